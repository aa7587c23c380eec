"""A Ray cluster of several nodes, as processes of this machine that only talk to each other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

# Before Ray is imported: no statistics are sent, and nodes listen on the loopback interface only,
# where Ray would else look for an address that other machines can reach.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


@contextlib.contextmanager
def cluster(nodes: int, store_bytes: int = 128 << 20, *, warm: bool = False) -> Iterator[str]:
    """The address of a cluster of nodes with one core each; a warm one has its memory at once."""
    os.environ.update(QUIET)
    if warm:
        os.environ["RAY_preallocate_plasma_memory"] = "1"
    import ray
    from ray.cluster_utils import Cluster

    here = {
        "num_cpus": 1,
        "node_ip_address": "127.0.0.1",
        "object_store_memory": store_bytes,
        "include_dashboard": False,
    }
    made = Cluster(initialize_head=True, head_node_args=here)
    try:
        for _ in range(nodes - 1):
            made.add_node(**here)
        yield made.address
    finally:
        ray.shutdown()
        made.shutdown()

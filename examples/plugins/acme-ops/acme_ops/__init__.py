"""What the package adds to irees: names only, so that finding it imports nothing else."""

from irees.plugins import Plugin

PLUGIN = Plugin(
    name="acme",
    version="1.0",
    dialects={"acme": "acme_ops.dialect:Acme"},
    interfaces={
        "acme.smooth": "acme_ops.smooth:Smooth",
        "acme.squash": "acme_ops.squash:Squash",
    },
    passes={"acme-double-by-adding": "acme_ops.double_by_adding:DoubleByAddingPass"},
)

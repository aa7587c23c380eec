/* The contract between generated code and the runtime. Included by both. */
#ifndef IREES_H
#define IREES_H
#include <stddef.h>
#include <stdint.h>

/* One dispatch, as seen by all of its workgroups. */
typedef struct irees_dispatch {
  void *const *buffers;   /* base pointers of the bindings, in order */
  const int64_t *scalars; /* scalar operands: integers sign-extended, floats by bit pattern */
  int32_t *trap;          /* a workgroup that traps writes its trap number here, and continues safely */
} irees_dispatch;

typedef void (*irees_workgroup_fn)(const irees_dispatch *dispatch, int64_t workgroup, void *scratch);

/* One kernel launch on a device, with 64 bits for each of the kernel's parameters. */
typedef struct irees_launch {
  int32_t kernel;       /* number of the kernel in the program */
  int32_t threads;      /* threads per block */
  int32_t waits;        /* whether its threads synchronize */
  int32_t count;        /* number of arguments */
  int64_t blocks;
  int64_t shared_bytes; /* static and dynamic shared memory */
  const int64_t *arguments; /* device pointers, integers sign-extended, floats by bit pattern; addresses
                               of tensor maps come first, their number is in the manifest */
} irees_launch;

/* A tensor on a device, with the innermost dim first, and the box that one TMA copy moves. */
#define IREES_MOST_DIMS 5
typedef struct irees_tensor {
  const void *address;
  int32_t rank;
  int32_t element_bytes;
  int32_t swizzle_bytes;            /* bytes of a box row, whose 16-byte chunks are swizzled */
  int64_t sizes[IREES_MOST_DIMS];   /* 0 counts as 1: no element of it is copied */
  int64_t strides[IREES_MOST_DIMS]; /* in bytes */
  int32_t box[IREES_MOST_DIMS];
} irees_tensor;
/* The encoded form of a tensor for kernels, in a format private to the driver. */
typedef struct irees_tensor_map {
  uint64_t words[16];
} __attribute__((aligned(64))) irees_tensor_map;

/* Services of the runtime. `pool` is opaque to generated code. */
typedef struct irees_runtime {
  void *pool;
  /* Runs workgroups 0..count-1, each exactly once. Returns when all are done and their stores,
     including non-temporal ones, are visible to all threads. Each thread starts with a static range,
     the same for the same count and number of threads, and then steals from the others. It has its own
     scratch of at least scratch_bytes, 64-byte aligned. */
  void (*parallel)(void *pool, irees_workgroup_fn fn, const irees_dispatch *dispatch, int64_t count,
                   int64_t scratch_bytes);
  /* 64-byte aligned memory, or NULL. */
  void *(*alloc)(int64_t bytes);
  void (*free)(void *pointer);
  /* Devices only, where `alloc` allocates device memory. Operations run in call order. They return a
     status: 0 or an error code of an entry. `read` waits for earlier launches, the others need not. */
  int32_t (*launch)(void *pool, const irees_launch *launch);
  int32_t (*read)(void *pool, void *host, const void *device, int64_t bytes);
  int32_t (*write)(void *pool, void *device, const void *host, int64_t bytes);
  int32_t (*copy)(void *pool, void *device, const void *source, int64_t bytes);
  int32_t (*encode_tensor_map)(void *pool, irees_tensor_map *map, const irees_tensor *tensor);
  /* Zeroed device memory, or NULL. It must be zero again when it is freed. */
  void *(*counters)(void *pool, int64_t bytes);
  /* The trap word of the call in device memory, initially 0, or NULL if out of memory. A kernel that
     traps writes its trap number there, and the caller reads it at the end of the call. */
  int32_t *(*trap_word)(void *pool);
} irees_runtime;

/* One invocation of a public function. */
typedef struct irees_call {
  const irees_runtime *rt;
  void *const *args;          /* one pointer per argument: array data (row-major, dense), or the scalar's value */
  const int64_t *arg_dims;    /* the dynamic dims of all array arguments, in order */
  const void *const *constants;
  void **results;             /* out: one pointer per result. Arrays: from rt->alloc, owned by the caller.
                                 Scalars: points into result_scalars. */
  int64_t *result_dims;       /* out: every dim (static too) of all array results, in order */
  int64_t *result_scalars;    /* out: 16 bytes per result, used by scalar results */
  int64_t *trap;              /* out: 4 numbers for placeholders in a trap message */
  /* Called only by programs compiled with tracing: the number of the trace in the manifest, the
     buffers, and all their dims (static too) in order. */
  void (*trace)(int32_t trace, void *const *values, const int64_t *dims);
} irees_call;

/* Returned by an entry: 0 is success, n > 0 is trap n-1 of the manifest. */
#define IREES_OUT_OF_MEMORY (-1)
#define IREES_SIZE_OVERFLOW (-2)
#define IREES_DEVICE_FAULT (-3)
#define IREES_MISALIGNED (-4)
#define IREES_BAD_BOX (-5)
#define IREES_BAD_COUNTER (-6)

typedef int32_t (*irees_entry_fn)(const irees_call *call);
#endif

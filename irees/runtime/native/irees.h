/* The contract between generated code and the runtime. Included by both. */
#ifndef IREES_H
#define IREES_H
#include <stddef.h>
#include <stdint.h>

/* One dispatch: what every workgroup of it sees. */
typedef struct irees_dispatch {
  void *const *buffers;   /* base pointers of the bindings, in order */
  const int64_t *scalars; /* scalar operands: integers sign-extended, floats by bit pattern */
  int32_t *trap;          /* a workgroup that fails writes its trap number here, and goes on harmlessly */
} irees_dispatch;

typedef void (*irees_workgroup_fn)(const irees_dispatch *dispatch, int64_t workgroup, void *scratch);

/* One kernel to run on a device: blocks of threads, and 64 bits for each of its parameters. */
typedef struct irees_launch {
  int32_t kernel;       /* its number in the program */
  int32_t threads;      /* of a block */
  int32_t waits;        /* whether its threads wait for each other */
  int32_t count;        /* of arguments */
  int64_t blocks;
  int64_t shared_bytes; /* of shared memory, what is static included */
  const int64_t *arguments; /* device pointers, integers sign-extended, floats by bit pattern; the
                               first may be addresses of tensor maps, which the manifest counts */
} irees_launch;

/* A tensor on a device, dims from the dense one on, and the boxes of it that are copied at a time. */
#define IREES_MOST_DIMS 5
typedef struct irees_tensor {
  const void *address;
  int32_t rank;
  int32_t element_bytes;
  int32_t swizzle_bytes;            /* the rows whose pieces of 16 bytes change places in a box */
  int64_t sizes[IREES_MOST_DIMS];   /* 0 is taken for 1: nothing of it is copied */
  int64_t strides[IREES_MOST_DIMS]; /* in bytes */
  int32_t box[IREES_MOST_DIMS];
} irees_tensor;
/* What a kernel is told of it, in a format that only the device's driver knows. */
typedef struct irees_tensor_map {
  uint64_t words[16];
} __attribute__((aligned(64))) irees_tensor_map;

/* Services of the runtime. `pool` is opaque to generated code. */
typedef struct irees_runtime {
  void *pool;
  /* Runs workgroups 0..count-1, each exactly once, and returns when all are done and what they stored
     is seen by all, stores past the caches too. Each thread begins with a range of its own, the same
     one for the same count and number of threads, and then takes what is left of the others'. It has
     its own scratch of at least scratch_bytes, 64-byte aligned. */
  void (*parallel)(void *pool, irees_workgroup_fn fn, const irees_dispatch *dispatch, int64_t count,
                   int64_t scratch_bytes);
  /* 64-byte aligned memory, or NULL. */
  void *(*alloc)(int64_t bytes);
  void (*free)(void *pointer);
  /* Of a device only, where `alloc` gives its memory: each in the order of the calls. A status is 0
     or what an entry returns. `read` waits for what was launched before; the rest need not. */
  int32_t (*launch)(void *pool, const irees_launch *launch);
  int32_t (*read)(void *pool, void *host, const void *device, int64_t bytes);
  int32_t (*write)(void *pool, void *device, const void *host, int64_t bytes);
  int32_t (*copy)(void *pool, void *device, const void *source, int64_t bytes);
  int32_t (*encode_tensor_map)(void *pool, irees_tensor_map *map, const irees_tensor *tensor);
  /* Memory of a device that is 0, or NULL. It is 0 again when `free` is called. */
  void *(*counters)(void *pool, int64_t bytes);
  /* A word of the device, the same in the whole call, that was 0 when the call began, or NULL: a
     kernel that fails writes its trap number there, and the caller reads it when the call is over. */
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
  int64_t *trap;              /* out: 4 numbers that a trap message may mention */
  /* Called by programs that were compiled to trace only, with the number of the trace in the manifest,
     the buffers and all their dims (static too) in order. */
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

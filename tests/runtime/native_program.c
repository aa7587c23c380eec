/* A program written by hand against irees.h: what the C backend prints, in small. */
#include "irees.h"
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static void add_rows(const irees_dispatch *d, int64_t row, void *scratch) {
  const float *a = d->buffers[0], *b = d->buffers[1];
  float *sum = d->buffers[2], *copy = scratch;
  for (int64_t i = row * 8; i < row * 8 + 8; i++) {
    copy[i & 7] = a[i];
    sum[i] = copy[i & 7] + b[i];
  }
}

/* (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32> */
EXPORT int32_t irees_entry_0(const irees_call *call) {
  int64_t rows = call->arg_dims[0];
  float *result = call->rt->alloc(rows * 32);
  if (!result) return IREES_OUT_OF_MEMORY;
  void *buffers[3] = {call->args[0], call->args[1], result};
  irees_dispatch d = {.buffers = buffers};
  call->rt->parallel(call->rt->pool, add_rows, &d, rows, 64);
  call->results[0] = result;
  call->result_dims[0] = rows;
  call->result_dims[1] = 8;
  return 0;
}

/* (f32, i64, i1) -> (f32, i64, i1): x + 1, n * 2, not b */
EXPORT int32_t irees_entry_1(const irees_call *call) {
  *(float *)(call->result_scalars + 0) = *(float *)call->args[0] + 1.0f;
  *(int64_t *)(call->result_scalars + 2) = *(int64_t *)call->args[1] * 2;
  *(uint8_t *)(call->result_scalars + 4) = !*(uint8_t *)call->args[2];
  for (int i = 0; i < 3; i++) call->results[i] = call->result_scalars + 2 * i;
  return 0;
}

/* (tensor<4xf32>) -> tensor<4xf32>, stops after it has allocated its result */
EXPORT int32_t irees_entry_2(const irees_call *call) {
  call->results[0] = call->rt->alloc(16);
  call->trap[0] = 7;
  call->trap[1] = 4;
  return 1;
}

/* (tensor<?x2x?>) -> the same bytes; the size of an element is constant 0 */
EXPORT int32_t irees_entry_3(const irees_call *call) {
  int64_t element = *(const int64_t *)call->constants[0];
  int64_t bytes = call->arg_dims[0] * 2 * call->arg_dims[1] * element;
  void *result = call->rt->alloc(bytes);
  if (!result) return IREES_OUT_OF_MEMORY;
  memcpy(result, call->args[0], (size_t)bytes);
  call->results[0] = result;
  call->result_dims[0] = call->arg_dims[0];
  call->result_dims[1] = 2;
  call->result_dims[2] = call->arg_dims[1];
  return 0;
}

/* () -> tensor<?xi8>: more than there is */
EXPORT int32_t irees_entry_4(const irees_call *call) {
  return call->rt->alloc((int64_t)1 << 61) ? 0 : IREES_OUT_OF_MEMORY;
}

static void touch(const irees_dispatch *d, int64_t i, void *scratch) {
  ((int64_t *)d->buffers[0])[i] = i;
  memset(scratch, (int)i, (size_t)d->scalars[0]);
}

/* (i64 count, i64 scratch bytes) -> tensor<?xi64>: 0, 1, 2, ... */
EXPORT int32_t irees_entry_5(const irees_call *call) {
  int64_t count = *(int64_t *)call->args[0], bytes = *(int64_t *)call->args[1];
  void *buffers[1] = {call->rt->alloc(count * 8)};
  if (!buffers[0]) return IREES_OUT_OF_MEMORY;
  irees_dispatch d = {.buffers = buffers, .scalars = &bytes};
  call->results[0] = buffers[0];
  call->result_dims[0] = count;
  call->rt->parallel(call->rt->pool, touch, &d, count, bytes);
  return 0;
}

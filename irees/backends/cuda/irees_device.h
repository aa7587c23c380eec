/* The host program's access to a device: through runtime services, or directly if emulated. */
#ifdef IREES_EMULATED
typedef void (*irees_kernel_fn)(const int64_t *arguments);
extern const irees_kernel_fn irees_kernels[];
int32_t irees_emulated_launch(const irees_runtime *rt, const irees_launch *launch, irees_kernel_fn kernel);
int32_t irees_emulated_tensor_map(irees_tensor_map *map, const irees_tensor *tensor);
void *irees_emulated_counters(const irees_runtime *rt, int64_t bytes);
int32_t irees_emulated_counted(const void *counters, int64_t bytes);
#define IREES_COUNTERS(bytes) irees_emulated_counters(rt, bytes)
#define IREES_COUNTED(counters, bytes) irees_emulated_counted(counters, bytes)
#define IREES_LAUNCH(l) irees_emulated_launch(rt, l, irees_kernels[(l)->kernel])
#define IREES_ENCODE_TENSOR_MAP(map, tensor) irees_emulated_tensor_map(map, tensor)
#define IREES_TRAP_WORD(word) &(word)
#define IREES_TRAPPED(word, status) ((word) ? (word) : (status))
/* A trapped kernel leaves garbage, and a host loop that reads it might not terminate. */
#define IREES_DEVICE_READ(host, device, bytes) (memcpy(host, device, (size_t)(bytes)), *trap)
#define IREES_DEVICE_WRITE(device, host, bytes) (memcpy(device, host, (size_t)(bytes)), 0)
#define IREES_DEVICE_COPY(device, source, bytes) (memcpy(device, source, (size_t)(bytes)), 0)
#else
#define IREES_COUNTERS(bytes) rt->counters(rt->pool, bytes)
#define IREES_COUNTED(counters, bytes) 0
#define IREES_LAUNCH(l) rt->launch(rt->pool, l)
#define IREES_ENCODE_TENSOR_MAP(map, tensor) rt->encode_tensor_map(rt->pool, map, tensor)
#define IREES_TRAP_WORD(word) rt->trap_word(rt->pool)
#define IREES_TRAPPED(word, status) (status)
#define IREES_DEVICE_READ(host, device, bytes) rt->read(rt->pool, host, device, bytes)
#define IREES_DEVICE_WRITE(device, host, bytes) rt->write(rt->pool, device, host, bytes)
#define IREES_DEVICE_COPY(device, source, bytes) rt->copy(rt->pool, device, source, bytes)
#endif

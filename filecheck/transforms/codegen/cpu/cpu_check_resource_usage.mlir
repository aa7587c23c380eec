// RUN: irees opt %s -p irees-cpu-check-resource-usage | filecheck %s
// RUN: not irees opt %s -p 'irees-assign-target{facts="stack_bytes=511"},irees-cpu-check-resource-usage' 2>&1 | filecheck %s --check-prefix TOO-MUCH

// TOO-MUCH: cpu_check_resource_usage.mlir:8:3: error: func.func: uses 512 bytes of stack; exceeded the limit of 511 bytes

// Only what is on the stack counts.
// CHECK-LABEL: func.func @fits
  func.func @fits() {
    %a = memref.alloca() : memref<128xf32>
    %b = memref.alloc() : memref<65536xf32>
    return
  }

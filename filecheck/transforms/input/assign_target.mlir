// RUN: xdsl-opt %s -p 'irees-assign-target{target="cpu:x86-64-v3" facts="threads=8 l2_bytes=4096"}' | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{target="cuda:sm_80" fp=strict}' | filecheck %s --check-prefix GPU
// RUN: not xdsl-opt %s -p 'irees-assign-target{facts="theads=8"}' 2>&1 | filecheck %s --check-prefix NAME
// RUN: not xdsl-opt %s -p 'irees-assign-target{facts="threads=many"}' 2>&1 | filecheck %s --check-prefix NUMBER

// Facts that are given replace those of the target.
// CHECK: builtin.module attributes {irees.target = #irees.target<{kind = "cpu", arch = "x86-64-v3"
// CHECK-SAME: vector_bytes = 32 : i64
// CHECK-SAME: l2_bytes = 4096 : i64
// CHECK-SAME: threads = 8 : i64
// CHECK-NEXT: func.func @no_change

// A GPU is a dictionary of its own.
// GPU: irees.target = #irees.target<{kind = "cuda", arch = "sm_80"
// GPU-SAME: gpu = {shared_opt_in_bytes = 166912 : i64, multiprocessors = 108 : i64
// GPU-SAME: irees.fp = "strict"

// A fact that does not exist is refused.
// NAME: a target has no fact 'theads'

// NUMBER: fact 'threads' is 'many', but must be a number
func.func @no_change() { return }

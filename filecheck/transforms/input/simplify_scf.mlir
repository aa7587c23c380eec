// RUN: xdsl-opt %s -p irees-simplify-scf --split-input-file | filecheck %s

// CHECK-LABEL: func.func @switch
// CHECK-NEXT:    %[[N:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[C:.*]] = arith.cmpi eq, %i, %[[N]] : index
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[C]] -> (f32) {
// CHECK-NEXT:      scf.yield %x : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[M:.*]] = arith.constant -3 : index
// CHECK-NEXT:      %[[D:.*]] = arith.cmpi eq, %i, %[[M]] : index
// CHECK-NEXT:      %[[S:.*]] = scf.if %[[D]] -> (f32) {
// CHECK-NEXT:        scf.yield %y : f32
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[E:.*]] = arith.addf %x, %y : f32
// CHECK-NEXT:        scf.yield %[[E]] : f32
// CHECK:           scf.yield %[[S]] : f32
// CHECK:         func.return %[[R]] : f32
func.func @switch(%i: index, %x: f32, %y: f32) -> f32 {
  %r = scf.index_switch %i -> f32
  case 1 {
    scf.yield %x : f32
  }
  case -3 {
    scf.yield %y : f32
  }
  default {
    %a = arith.addf %x, %y : f32
    scf.yield %a : f32
  }
  return %r : f32
}

// -----

// Two loops around each other; the second insertion is into what the first one left.
// CHECK-LABEL: func.func @forall
// CHECK:         %[[R:.*]] = scf.for %[[I:.*]] = %{{.*}} to %n step %{{.*}} iter_args(%[[O:.*]] = %e) -> (tensor<8x8xf32>) {
// CHECK-NEXT:      %[[S:.*]] = scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[P:.*]] = %[[O]]) -> (tensor<8x8xf32>) {
// CHECK-NEXT:        %[[A:.*]] = tensor.insert_slice %t into %[[P]][%[[I]], %[[J]]] [1, 1] [1, 1]
// CHECK-NEXT:        %[[B:.*]] = tensor.insert_slice %t into %[[A]][%[[J]], %[[I]]] [1, 1] [1, 1]
// CHECK-NEXT:        scf.yield %[[B]]
// CHECK:           scf.yield %[[S]]
// CHECK:         func.return %[[R]]
func.func @forall(%n: index, %t: tensor<1x1xf32>, %e: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = scf.forall (%i, %j) = (0, 2) to (%n, 8) step (1, 3) shared_outs(%o = %e) -> (tensor<8x8xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i, %j] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<8x8xf32>
      tensor.parallel_insert_slice %t into %o[%j, %i] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<8x8xf32>
    }
  }
  return %r : tensor<8x8xf32>
}

// -----

// CHECK-LABEL: func.func @parallel
// CHECK:         scf.for %[[I:.*]] = %lo to %hi step %s iter_args(%[[T:.*]] = %z, %[[M:.*]] = %x) -> (f32, f32) {
// CHECK-NEXT:      %[[V:.*]] = tensor.extract %a[%[[I]]]
// CHECK-NEXT:      %[[W:.*]] = arith.addf %[[T]], %[[V]]
// CHECK-NEXT:      %[[X:.*]] = arith.maximumf %[[M]], %[[V]]
// CHECK-NEXT:      scf.yield %[[W]], %[[X]]
func.func @parallel(%lo: index, %hi: index, %s: index, %z: f32, %x: f32, %a: tensor<8xf32>) -> (f32, f32) {
  %r:2 = scf.parallel (%i) = (%lo) to (%hi) step (%s) init (%z, %x) -> (f32, f32) {
    %v = tensor.extract %a[%i] : tensor<8xf32>
    scf.reduce(%v, %v : f32, f32) {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      scf.reduce.return %t : f32
    }, {
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      scf.reduce.return %t : f32
    }
  }
  return %r#0, %r#1 : f32, f32
}

// -----

// CHECK-LABEL: func.func @region
// CHECK-NEXT:    %[[A:.*]] = arith.addf %x, %x : f32
// CHECK-NEXT:    func.return %[[A]], %x
func.func @region(%x: f32) -> (f32, f32) {
  %r:2 = scf.execute_region -> (f32, f32) {
    %a = arith.addf %x, %x : f32
    scf.yield %a, %x : f32, f32
  }
  return %r#0, %r#1 : f32, f32
}

// -----

// An outermost parallel loop that only accesses memory stays parallel, from 0 by 1.
// CHECK-LABEL: func.func @on_memory
// CHECK:      %[[D:.+]] = arith.subi %hi, %lo : index
// CHECK:      arith.maxsi
// CHECK:      scf.forall (%[[I:.+]], %[[J:.+]]) in (%{{.+}}, %{{.+}}) {
// CHECK:        %[[K:.+]] = arith.addi %{{.+}}, %{{.+}} : index
// CHECK:        memref.store %x, %b[%{{.+}}, %{{.+}}] : memref<?x?xf32>
// CHECK-NEXT: }
func.func @on_memory(%b: memref<?x?xf32>, %x: f32, %lo: index, %hi: index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.parallel (%i, %j) = (%lo, %c1) to (%hi, %hi) step (%c2, %c1) {
    memref.store %x, %b[%i, %j] : memref<?x?xf32>
    scf.reduce
  }
  func.return
}

// -----

// One inside of another loop, and one with atomic updates, run in order.
// CHECK-LABEL: func.func @no_on_memory
// CHECK-NOT: scf.forall
// CHECK-NOT: scf.parallel
func.func @no_on_memory(%b: memref<?xf32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    scf.forall (%i) in (%n) {
      memref.store %x, %b[%i] : memref<?xf32>
    }
  }
  scf.forall (%i) in (%n) {
    %o = memref.atomic_rmw addf %x, %b[%c0] : (f32, memref<?xf32>) -> f32
  }
  func.return
}

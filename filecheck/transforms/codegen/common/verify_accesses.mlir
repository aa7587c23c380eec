// RUN: xdsl-opt %s -p irees-verify-accesses | filecheck %s

// The host has asserted that there is room for three more: all is shown, nothing changes.
// CHECK:       flow.executable @asserted attributes {accesses = {proved = 2 : i64, guarded = 0 : i64, together = 0 : i64}
// CHECK-NOT:   scf.if
// CHECK:       func.func @main_asserted
flow.executable @asserted {
  builtin.module {
    func.func @asserted(%x: memref<?xf32>, %y: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %n = memref.dim %y, %c0 : memref<?xf32>
      scf.forall (%i) in (%n) {
        %at = arith.addi %i, %c3 : index
        %v = memref.load %x[%at] : memref<?xf32>
        memref.store %v, %y[%i] : memref<?xf32>
      }
      func.return
    }
  }
}
func.func @main_asserted(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %m = memref.dim %x, %c0 : memref<?xf32>
  %n = memref.dim %y, %c0 : memref<?xf32>
  %end = arith.addi %n, %c3 : index
  %fits = arith.cmpi sle, %end, %m : index
  cf.assert %fits, "the window must lie inside"
  stream.cmd.dispatch @asserted::@asserted(%x, %y) : memref<?xf32>, memref<?xf32>
  func.return
}

// Nothing was asserted: the load is guarded, the store is not.
// CHECK:       flow.executable @unknown attributes {accesses = {proved = 1 : i64, guarded = 1 : i64, together = 0 : i64}
// CHECK:         scf.forall
// CHECK:         %[[SIZE:.*]] = memref.dim %x, %{{.*}} : memref<?xf32>
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ult, %at, %[[SIZE]] : index
// CHECK-NEXT:    %[[V:.*]] = scf.if %[[INSIDE]] -> (f32) {
// CHECK-NEXT:      %[[L:.*]] = memref.load %x[%at] {guarded = true}
// CHECK-NEXT:      scf.yield %[[L]] : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:      scf.yield %[[ZERO]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    memref.store %[[V]], %y[%i] : memref<?xf32>
flow.executable @unknown {
  builtin.module {
    func.func @unknown(%x: memref<?xf32>, %y: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %n = memref.dim %y, %c0 : memref<?xf32>
      scf.forall (%i) in (%n) {
        %at = arith.addi %i, %c3 : index
        %v = memref.load %x[%at] : memref<?xf32>
        memref.store %v, %y[%i] : memref<?xf32>
      }
      func.return
    }
  }
}
func.func @main_unknown(%x: memref<?xf32>, %y: memref<?xf32>) {
  stream.cmd.dispatch @unknown::@unknown(%x, %y) : memref<?xf32>, memref<?xf32>
  func.return
}

// A vector is inside with all its lanes, or not at all; a store is left out. Vectors of neighbours
// overlap.
// CHECK:       flow.executable @vectors attributes {accesses = {proved = 0 : i64, guarded = 1 : i64, together = 1 : i64}
// CHECK:         scf.forall
// CHECK:         %[[SIZE:.*]] = memref.dim %y, %{{.*}} : memref<?xf32>
// CHECK-NEXT:    %[[SEVEN:.*]] = arith.constant 7 : index
// CHECK-NEXT:    %[[REST:.*]] = arith.subi %[[SIZE]], %[[SEVEN]] : index
// CHECK-NEXT:    %[[NONE:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[LIMIT:.*]] = arith.maxsi %[[REST]], %[[NONE]] : index
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ult, %i, %[[LIMIT]] : index
// CHECK-NEXT:    scf.if %[[INSIDE]] {
// CHECK-NEXT:      vector.store %v, %y[%i] {guarded = true}
// CHECK-NEXT:    }
flow.executable @vectors {
  builtin.module {
    func.func @vectors(%y: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %v = arith.constant dense<1.0> : vector<8xf32>
      %n = memref.dim %y, %c0 : memref<?xf32>
      scf.forall (%i) in (%n) {
        vector.store %v, %y[%i] : memref<?xf32>, vector<8xf32>
      }
      func.return
    }
  }
}
func.func @main_vectors(%y: memref<?xf32>) {
  stream.cmd.dispatch @vectors::@vectors(%y) : memref<?xf32>
  func.return
}

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
// CHECK-NEXT:    %[[LANES:.*]] = arith.constant 8 : index
// CHECK-NEXT:    %[[LAST:.*]] = arith.subi %[[SIZE]], %[[LANES]] : index
// CHECK-NEXT:    %[[NONE:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[LOW:.*]] = arith.cmpi sle, %[[NONE]], %i : index
// CHECK-NEXT:    %[[HIGH:.*]] = arith.cmpi sle, %i, %[[LAST]] : index
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.andi %[[LOW]], %[[HIGH]] : i1
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

// All lanes of a warp load matrices together: one whose row is outside reads the first one.
// CHECK:       flow.executable @matrices attributes {accesses = {proved = 1 : i64, guarded = 1 : i64, together = 0 : i64}
// CHECK:         nvgpu.ldmatrix %s[%l, %none]
// CHECK:         %[[HIGH:.*]] = arith.cmpi sle, %none, %{{.*}} : index
// CHECK-NEXT:    %[[BOTH:.*]] = arith.andi %{{.*}}, %[[HIGH]] : i1
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.andi %{{.*}}, %[[BOTH]] : i1
// CHECK-NEXT:    %{{.*}} = arith.constant 0 : index
// CHECK-NEXT:    %[[ROW:.*]] = arith.select %[[INSIDE]], %row, %{{.*}} : index
// CHECK:         %[[COLUMN:.*]] = arith.select %[[INSIDE]], %none, %{{.*}} : index
// CHECK-NEXT:    nvgpu.ldmatrix %s[%[[ROW]], %[[COLUMN]]]
flow.executable @matrices {
  builtin.module {
    func.func @matrices(%y: memref<?xf32>, %row: index) {
      %c32 = arith.constant 32 : index
      %none = arith.constant 0 : index
      scf.forall (%b) in (1) {
        %s = memref.alloc() : memref<32x8xf16, #gpu.address_space<workgroup>>
        scf.forall (%l) in (32) {
          %a = nvgpu.ldmatrix %s[%l, %none] {transpose = false, numTiles = 4 : i32} : memref<32x8xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
          %c = nvgpu.ldmatrix %s[%row, %none] {transpose = false, numTiles = 4 : i32} : memref<32x8xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
        } {mapping = [#gpu.thread<x>]}
      } {mapping = [#gpu.block<x>]}
      func.return
    }
  }
}
func.func @main_matrices(%y: memref<?xf32>, %row: index) {
  stream.cmd.dispatch @matrices::@matrices(%y, %row) : memref<?xf32>, index
  func.return
}

// The product of the sizes of the strip may wrap, so the address is compared with all of the buffer,
// and is what the load has.
// CHECK:       flow.executable @flat attributes {accesses = {proved = 0 : i64, guarded = 1 : i64, together = 0 : i64}
// CHECK:         %[[AT:.*]] = arith.addi %p, %o : index
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]], %{{.*}} : index
// CHECK:         %[[ALL:.*]] = memref.reinterpret_cast %base to offset: [%{{.*}}], sizes: [%{{.*}}], strides: [1]
// CHECK-NEXT:    scf.if %[[INSIDE]]
// CHECK-NEXT:      memref.load %[[ALL]][%[[AT]]] {guarded = true}
flow.executable @flat {
  builtin.module {
    func.func @flat(%x: memref<?x?xf32>, %i: index, %o: index, %huge: index) {
      %p = arith.muli %i, %i : index
      %base, %begin, %sizes:2, %strides:2 = memref.extract_strided_metadata %x : memref<?x?xf32> -> memref<f32>, index, index, index, index, index
      %f = memref.reinterpret_cast %base to offset: [%o], sizes: [%huge], strides: [1] : memref<f32> to memref<?xf32, strided<[1], offset: ?>>
      %v = memref.load %f[%p] : memref<?xf32, strided<[1], offset: ?>>
      func.return
    }
  }
}
func.func @main_flat(%x: memref<?x?xf32>, %i: index, %o: index, %huge: index) {
  stream.cmd.dispatch @flat::@flat(%x, %i, %o, %huge) : memref<?x?xf32>, index, index, index
  func.return
}

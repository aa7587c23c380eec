// RUN: xdsl-opt %s -p irees-lift-cf-to-scf --split-input-file | filecheck %s

// A side of a choice may be empty; an early return is another way to the one return.
// CHECK-LABEL: func.func @early
// CHECK-NEXT:    %[[R:.*]] = scf.if %c -> (tensor<4xf32>) {
// CHECK-NEXT:      %[[E:.*]] = math.exp %x
// CHECK-NEXT:      scf.yield %[[E]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %x
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %[[R]]
func.func @early(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  cf.cond_br %c, ^a, ^b
^a:
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
^b:
  return %x : tensor<4xf32>
}

// -----

// A loop with its test at the top, whose value is used after it.
// CHECK-LABEL: func.func @loop
// CHECK:         %[[L:.*]], %[[X:.*]] = scf.while (%[[I:.*]] = %c0) : (i32) -> (i32, i32) {
// CHECK-NEXT:      %[[T:.*]] = arith.muli %[[I]], %[[I]]
// CHECK-NEXT:      %[[P:.*]] = arith.cmpi slt, %[[T]], %n
// CHECK-NEXT:      %[[Q:.*]], %[[J:.*]], %[[U:.*]] = scf.if %[[P]] -> (i1, i32, i32) {
// CHECK-NEXT:        %[[N:.*]] = arith.addi %[[I]], %c1
// CHECK-NEXT:        %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT:        scf.yield %[[TRUE]], %[[N]], %[[T]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[FALSE:.*]] = arith.constant false
// CHECK-NEXT:        scf.yield %[[FALSE]], %[[I]], %[[T]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.condition(%[[Q]]) %[[J]], %[[U]]
// CHECK-NEXT:    } do {
// CHECK-NEXT:    ^bb0(%[[K:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT:      scf.yield %[[K]]
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %[[X]]
func.func @loop(%n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  cf.br ^test(%c0 : i32)
^test(%i: i32):
  %t = arith.muli %i, %i : i32
  %p = arith.cmpi slt, %t, %n : i32
  cf.cond_br %p, ^body, ^end
^body:
  %j = arith.addi %i, %c1 : i32
  cf.br ^test(%j : i32)
^end:
  return %t : i32
}

// -----

// A switch is one choice after the other; both ways to ^c meet, and carry what only one has.
// CHECK-LABEL: func.func @switch
// CHECK-NEXT:    %[[M:.*]] = arith.constant -1 : i32
// CHECK-NEXT:    %[[P:.*]] = arith.cmpi eq, %i, %[[M]]
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[P]] -> (i32) {
// CHECK-NEXT:      scf.yield %x
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[N:.*]] = arith.constant 7 : i32
// CHECK-NEXT:      %[[Q:.*]] = arith.cmpi eq, %i, %[[N]]
// CHECK-NEXT:      %[[S:.*]] = scf.if %[[Q]] -> (i32) {
// CHECK-NEXT:        scf.yield %y
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %i
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[S]]
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %[[R]]
func.func @switch(%i: i32, %x: i32, %y: i32) -> i32 {
  cf.switch %i : i32, [
    default: ^c(%i : i32),
    -1: ^c(%x : i32),
    7: ^c(%y : i32)
  ]
^c(%r: i32):
  return %r : i32
}

// -----

// A loop that is entered at two places: a number says at which, also when it goes on.
// CHECK-LABEL: func.func @irreducible
// CHECK:         scf.if %c -> (i32, i32, i32)
// CHECK:         scf.while (%{{.*}}) : (i32, i32, i32) -> (i32, i32, i32, i32)
// CHECK-COUNT-3: scf.if
// CHECK:         scf.condition
// CHECK:         scf.yield %{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i32
// CHECK-NOT:     cf.
func.func @irreducible(%n: i32, %c: i1) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  cf.cond_br %c, ^a(%n : i32), ^b(%n : i32)
^a(%x: i32):
  %x1 = arith.subi %x, %c1 : i32
  %p = arith.cmpi sgt, %x1, %c0 : i32
  cf.cond_br %p, ^b(%x1 : i32), ^end(%x1 : i32)
^b(%y: i32):
  %y1 = arith.subi %y, %c1 : i32
  %q = arith.cmpi sgt, %y1, %c0 : i32
  cf.cond_br %q, ^a(%y1 : i32), ^end(%y1 : i32)
^end(%r: i32):
  return %r : i32
}

// -----

// Blocks that nothing comes to are gone; blocks in a region of its own are lifted there.
// CHECK-LABEL: func.func @region
// CHECK-NEXT:    %[[R:.*]] = scf.execute_region -> (f32) {
// CHECK-NEXT:      %[[A:.*]] = scf.if %c -> (f32) {
// CHECK:           scf.yield %[[A]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %[[R]]
func.func @region(%c: i1, %x: f32, %y: f32) -> f32 {
  %r = scf.execute_region -> f32 {
    cf.cond_br %c, ^a, ^b
  ^a:
    scf.yield %x : f32
  ^b:
    scf.yield %y : f32
  }
  return %r : f32
^nowhere:
  cf.br ^there(%x : f32)
^there(%z: f32):
  cf.br ^nowhere
}

// An affine loop runs from the greatest lower bound to the least upper one.
// CHECK-LABEL: func.func @affine_loop
// CHECK:         %[[HIGH:.*]] = arith.minsi %n, %m : index
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[HIGH]] step %{{.*}} {
func.func @affine_loop(%n: index, %m: index) {
  affine.for %i = 0 to min affine_map<()[a, b] -> (a, b)>()[%n, %m] {
  }
  return
}

// A remainder is that of a division that rounds down.
// CHECK-LABEL: func.func @affine_mod
// CHECK:         %[[Q:.*]] = arith.floordivsi %n, %{{.*}} : index
// CHECK:         %[[P:.*]] = arith.muli %[[Q]], %{{.*}} : index
// CHECK-NEXT:    %[[R:.*]] = arith.subi %n, %[[P]] : index
// CHECK-NEXT:    func.return %[[R]] : index
func.func @affine_mod(%n: index) -> index {
  %r = affine.apply affine_map<(d0) -> (d0 mod 4)>(%n)
  return %r : index
}

// -----

// Affine accesses are those of memref and vector, and an affine.if compares.
// CHECK-LABEL: func.func @affine_accesses
// CHECK:      scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step %{{.+}} {
// CHECK:        %[[P:.+]] = arith.addi %[[I]], %{{.+}} : index
// CHECK:        memref.load %a[%[[P]]] : memref<16xf32>
// CHECK:        %[[Q:.+]] = arith.cmpi sge, %{{.+}}, %{{.+}} : index
// CHECK-NEXT:   scf.if %[[Q]] {
// CHECK-NEXT:     memref.store %{{.+}}, %a[%[[I]]] : memref<16xf32>
// CHECK:      vector.load %a[%{{.+}}] : memref<16xf32>, vector<4xf32>
// CHECK:      vector.store %{{.+}}, %a[%{{.+}}] : memref<16xf32>, vector<4xf32>
func.func @affine_accesses(%a: memref<16xf32>) {
  affine.for %i = 0 to 15 {
    %x = affine.load %a[%i + 1] : memref<16xf32>
    "affine.if"(%i) <{condition = affine_set<(d0) : (d0 - 3 >= 0)>}> ({
      affine.store %x, %a[%i] : memref<16xf32>
      "affine.yield"() : () -> ()
    }, {
    }) : (index) -> ()
  }
  %c0 = arith.constant 0 : index
  %v = affine.vector_load %a[%c0 + 4] : memref<16xf32>, vector<4xf32>
  affine.vector_store %v, %a[%c0 + 8] : memref<16xf32>, vector<4xf32>
  func.return
}

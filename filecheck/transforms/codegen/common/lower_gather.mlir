// RUN: xdsl-opt %s -p irees-lower-gather | filecheck %s

// Lanes go one by one, and one that is off is not read.
// CHECK-LABEL: func.func @lanes
// CHECK-NEXT:    %[[ON:.*]] = vector.extract %k[0] : i1 from vector<2xi1>
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[ON]] -> (vector<2xf32>) {
// CHECK-NEXT:      %[[X:.*]] = vector.extract %x[0] : i32 from vector<2xi32>
// CHECK-NEXT:      %[[Y:.*]] = arith.index_cast %[[X]] : i32 to index
// CHECK-NEXT:      %[[J:.*]] = arith.addi %j, %[[Y]] : index
// CHECK-NEXT:      %[[E:.*]] = memref.load %m[%i, %[[J]]] : memref<4x?xf32>
// CHECK-NEXT:      %[[S:.*]] = vector.insert %[[E]], %p [0] : f32 into vector<2xf32>
// CHECK-NEXT:      scf.yield %[[S]] : vector<2xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %p : vector<2xf32>
// CHECK-NEXT:    }
// CHECK:         vector.insert %{{.*}}, %[[R]] [1] : f32 into vector<2xf32>
func.func @lanes(%m: memref<4x?xf32>, %i: index, %j: index, %x: vector<2xi32>, %k: vector<2xi1>, %p: vector<2xf32>) -> vector<2xf32> {
  %r = vector.gather %m[%i, %j] [%x], %k, %p : memref<4x?xf32>, vector<2xi32>, vector<2xi1>, vector<2xf32> into vector<2xf32>
  return %r : vector<2xf32>
}

// A mask that is known needs no branch.
// CHECK-LABEL: func.func @known_mask
// CHECK-NOT:     scf.if
// CHECK:         vector.extract %x[0]
// CHECK-NOT:     vector.extract %x[1]
// CHECK:         vector.extract %x[2]
func.func @known_mask(%m: memref<?xf32>, %j: index, %x: vector<3xindex>, %p: vector<3xf32>) -> vector<3xf32> {
  %k = arith.constant dense<[true, false, true]> : vector<3xi1>
  %r = vector.gather %m[%j] [%x], %k, %p : memref<?xf32>, vector<3xindex>, vector<3xi1>, vector<3xf32> into vector<3xf32>
  return %r : vector<3xf32>
}

// Neighbours are one load.
// CHECK-LABEL: func.func @neighbours
// CHECK:         %[[A:.*]] = arith.addi %j, %n : index
// CHECK-NEXT:    %{{.*}} = vector.load %m[%[[A]]] : memref<?xf32>, vector<4xf32>
// CHECK:         %[[B:.*]] = arith.addi %j, %n : index
// CHECK-NEXT:    %[[ON:.*]] = vector.extract %k[0] : i1 from vector<4xi1>
// CHECK-NEXT:    scf.if %[[ON]]
// CHECK-NEXT:      memref.load %m[%[[B]]] : memref<?xf32>
func.func @neighbours(%m: memref<?xf32>, %j: index, %n: index, %k: vector<4xi1>, %p: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
  %s = vector.step : vector<4xindex>
  %b = vector.broadcast %n : index to vector<4xindex>
  %x = arith.addi %b, %s : vector<4xindex>
  %t = arith.constant dense<true> : vector<4xi1>
  %r = vector.gather %m[%j] [%x], %t, %p : memref<?xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %q = vector.gather %m[%j] [%x], %k, %p : memref<?xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %r, %q : vector<4xf32>, vector<4xf32>
}

// In a view with a stride they are no neighbours in memory.
// CHECK-LABEL: func.func @no_neighbours
// CHECK-NOT:     vector.load
// CHECK:         memref.load %m[%{{.*}}] : memref<8xf32, strided<[2]>>
func.func @no_neighbours(%m: memref<8xf32, strided<[2]>>, %j: index, %p: vector<4xf32>) -> vector<4xf32> {
  %x = arith.constant dense<[1, 2, 3, 4]> : vector<4xindex>
  %t = arith.constant dense<true> : vector<4xi1>
  %r = vector.gather %m[%j] [%x], %t, %p : memref<8xf32, strided<[2]>>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %r : vector<4xf32>
}

// The same element for all lanes is read if any lane is on.
// CHECK-LABEL: func.func @one_element
// CHECK:         %[[ANY:.*]] = vector.reduction <or>, %k : vector<4xi1> into i1
// CHECK-NEXT:    scf.if %[[ANY]]
// CHECK:           %[[E:.*]] = memref.load %m[%{{.*}}] : memref<?xf32>
// CHECK-NEXT:      %[[V:.*]] = vector.broadcast %[[E]] : f32 to vector<4xf32>
// CHECK-NEXT:      arith.select %k, %[[V]], %p
func.func @one_element(%m: memref<?xf32>, %j: index, %n: i32, %k: vector<4xi1>, %p: vector<4xf32>) -> vector<4xf32> {
  %x = vector.broadcast %n : i32 to vector<4xi32>
  %r = vector.gather %m[%j] [%x], %k, %p : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %r : vector<4xf32>
}

// Nothing is read where no lane is on.
// CHECK-LABEL: func.func @none
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    func.return %p
func.func @none(%m: memref<?xf32>, %j: index, %x: vector<4xi32>, %p: vector<4xf32>) -> vector<4xf32> {
  %k = arith.constant dense<false> : vector<4xi1>
  %r = vector.gather %m[%j] [%x], %k, %p : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %r : vector<4xf32>
}

// Of a tensor it stays.
// CHECK-LABEL: func.func @no_tensor
// CHECK-NEXT:    vector.gather
func.func @no_tensor(%m: tensor<?xf32>, %j: index, %x: vector<4xi32>, %k: vector<4xi1>, %p: vector<4xf32>) -> vector<4xf32> {
  %r = vector.gather %m[%j] [%x], %k, %p : tensor<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %r : vector<4xf32>
}

// A scatter stores the lanes that are on, in their order.
// CHECK-LABEL: func.func @scatter
// CHECK-NEXT:    %[[ON:.*]] = vector.extract %k[0] : i1 from vector<2xi1>
// CHECK-NEXT:    scf.if %[[ON]] {
// CHECK-NEXT:      %[[STEP:.*]] = vector.extract %x[0] : i32 from vector<2xi32>
// CHECK-NEXT:      %[[I:.*]] = arith.index_cast %[[STEP]] : i32 to index
// CHECK-NEXT:      %[[AT:.*]] = arith.addi %j, %[[I]] : index
// CHECK-NEXT:      %[[E:.*]] = vector.extract %v[0] : f32 from vector<2xf32>
// CHECK-NEXT:      memref.store %[[E]], %m[%[[AT]]] : memref<?xf32>
func.func @scatter(%m: memref<?xf32>, %j: index, %x: vector<2xi32>, %k: vector<2xi1>, %v: vector<2xf32>) {
  vector.scatter %m[%j] [%x], %k, %v : memref<?xf32>, vector<2xi32>, vector<2xi1>, vector<2xf32>
  return
}

// Of a constant mask, nothing is tested.
// CHECK-LABEL: func.func @masked
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[AT:.*]] = arith.addi %j, %[[ONE]] : index
// CHECK-NEXT:    %[[E:.*]] = memref.load %m[%[[AT]]] : memref<?xf32>
// CHECK-NEXT:    %[[V:.*]] = vector.insert %[[E]], %p [1] : f32 into vector<2xf32>
// CHECK-NEXT:    func.return %[[V]]
func.func @masked(%m: memref<?xf32>, %j: index, %p: vector<2xf32>) -> vector<2xf32> {
  %k = arith.constant dense<[false, true]> : vector<2xi1>
  %v = vector.maskedload %m[%j], %k, %p : memref<?xf32>, vector<2xi1>, vector<2xf32> into vector<2xf32>
  return %v : vector<2xf32>
}

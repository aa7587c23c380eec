// RUN: xdsl-opt %s -p irees-tile-and-fuse | filecheck %s
// RUN: irees opt %s -p irees-tile-and-fuse --remarks 2>&1 >%t.out | filecheck %s --check-prefix REMARK

#even = #iree_codegen.lowering_config<{workgroup = [32, 0]}>
#rest = #iree_codegen.lowering_config<{workgroup = [30, 0]}>
#reduced = #iree_codegen.lowering_config<{workgroup = [0, 4]}>
#window = #iree_codegen.lowering_config<{workgroup = [4, 0]}>
#column = #iree_codegen.lowering_config<{workgroup = [0, 16]}>

// A softmax over rows: all of it is computed in the loop, in slices of what is there. The powers go
// to where the result will be; nothing is allocated for a tile.
// CHECK-LABEL: func.func @rows
// CHECK:         scf.forall (%[[I:.*]]) = (0) to (512) step (32) shared_outs(%[[P:.*]] = %o) -> (tensor<512x64xf32>) {
// CHECK-NOT:       tensor.empty
// CHECK:           %[[Q:.*]] = tensor.extract_slice %[[P]][%[[I]], 0] [32, 64] [1, 1]
// CHECK:           %[[X:.*]] = tensor.extract_slice %x[%[[I]], 0] [32, 64] [1, 1]
// CHECK:           %[[E:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<32x64xf32>) outs(%[[Q]] : tensor<32x64xf32>)
// CHECK:           %[[S:.*]] = tensor.extract_slice %s[%[[I]]] [32] [1]
// CHECK:           %[[F:.*]] = linalg.fill {{.*}} outs(%[[S]] : tensor<32xf32>)
// CHECK:           %[[M:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<32x64xf32>) outs(%[[F]] : tensor<32xf32>)
// CHECK:           %[[R:.*]] = linalg.generic {{.*}} ins(%[[E]], %[[M]] : tensor<32x64xf32>, tensor<32xf32>) outs(%[[Q]] : tensor<32x64xf32>)
// CHECK:           tensor.parallel_insert_slice %[[R]] into %[[P]][%[[I]], 0] [32, 64] [1, 1]
// CHECK-NOT:     linalg.generic
// CHECK:         func.return
func.func @rows(%x: tensor<512x64xf32>, %o: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %t = tensor.empty() : tensor<512x64xf32>
  %s = tensor.empty() : tensor<512xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%s : tensor<512xf32>) -> tensor<512xf32>
  %e = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<512x64xf32>) outs(%t : tensor<512x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<512x64xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%e : tensor<512x64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%e, %m : tensor<512x64xf32>, tensor<512xf32>) outs(%o : tensor<512x64xf32>) attrs = {lowering_config = #even} {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<512x64xf32>
  return %r : tensor<512x64xf32>
}

// The last tile of a dynamic loop is shorter, and an index is one of the whole.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[N:.*]] = tensor.dim %o
// CHECK:         scf.forall (%[[I:.*]]) = (0) to (%[[N]]) step (30)
// CHECK:           %[[LEFT:.*]] = arith.subi %[[N]], %[[I]] : index
// CHECK:           %[[SIZE:.*]] = arith.minsi %{{.*}}, %[[LEFT]] : index
// CHECK:           tensor.extract_slice %{{.*}}[%[[I]], 0] [%[[SIZE]], 64] [1, 1]
// CHECK:           %[[J:.*]] = linalg.index 0 : index
// CHECK-NEXT:      arith.addi %[[J]], %[[I]] : index
func.func @dynamic(%o: tensor<?x64xindex>) -> tensor<?x64xindex> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%o : tensor<?x64xindex>) attrs = {lowering_config = #rest} {
  ^bb0(%a: index):
    %i = linalg.index 0 : index
    linalg.yield %i : index
  } -> tensor<?x64xindex>
  return %r : tensor<?x64xindex>
}

// A window of the operand goes with a tile.
// CHECK-LABEL: func.func @window
// CHECK:         scf.forall (%[[I:.*]]) = (0) to (8) step (4)
// CHECK:           tensor.extract_slice %x[%[[I]]] [6] [1] : tensor<10xf32> to tensor<6xf32>
func.func @window(%x: tensor<10xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<10xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>) attrs = {lowering_config = #window} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %c : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// What has another reader stays for it, and is computed in the loop as well.
// CHECK-LABEL: func.func @two_readers
// CHECK:         %[[E:.*]] = linalg.generic
// CHECK:         scf.forall
// CHECK:           math.exp
// CHECK:         func.return %{{.*}}, %[[E]]
func.func @two_readers(%x: tensor<8x64xf32>, %o: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %t = tensor.empty() : tensor<8x64xf32>
  %e = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%t : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<8x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%e : tensor<8x64xf32>) outs(%o : tensor<8x64xf32>) attrs = {lowering_config = #column} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  } -> tensor<8x64xf32>
  return %r, %e : tensor<8x64xf32>, tensor<8x64xf32>
}

// Tiles of a reduction would each need a part of the accumulator.
// CHECK-LABEL: func.func @no_reduction
// CHECK-NOT:     scf.forall
// REMARK:        not tiled: a reduction loop cannot be distributed to workgroups
func.func @no_reduction(%x: tensor<8x64xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%o : tensor<8xf32>) attrs = {lowering_config = #reduced} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// a matrix product, a softmax, and an exponential that takes some ten microseconds: for iree-compile
func.func @main(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<65536xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %product = linalg.matmul ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%clear : tensor<256x256xf32>) -> tensor<256x256xf32>
  %soft = linalg.softmax dimension(1) ins(%product : tensor<256x256xf32>) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %barrier = util.optimization_barrier %soft : tensor<256x256xf32>
  %flat = tensor.collapse_shape %barrier [[0, 1]] : tensor<256x256xf32> into tensor<65536xf32>
  %line = tensor.empty() : tensor<65536xf32>
  %power = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%flat : tensor<65536xf32>) outs(%line : tensor<65536xf32>) {
  ^bb0(%x: f32, %y: f32):
    %e = math.exp %x : f32
    linalg.yield %e : f32
  } -> tensor<65536xf32>
  return %soft, %power : tensor<256x256xf32>, tensor<65536xf32>
}

// two matrix products, one after the other: for iree-compile
func.func @main(%a: tensor<192x192xf32>, %b: tensor<192x192xf32>) -> tensor<192x192xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<192x192xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<192x192xf32>) -> tensor<192x192xf32>
  %first = linalg.matmul ins(%a, %b : tensor<192x192xf32>, tensor<192x192xf32>) outs(%clear : tensor<192x192xf32>) -> tensor<192x192xf32>
  %second = linalg.matmul ins(%first, %b : tensor<192x192xf32>, tensor<192x192xf32>) outs(%clear : tensor<192x192xf32>) -> tensor<192x192xf32>
  return %second : tensor<192x192xf32>
}

// A classifier of 8x8 images of handwritten digits: 64 - 128 - 10, for 450 images at once.
//
// %x holds an image per row, ink from 0 to 1; weights.npz holds the rest. Returned are the
// probability of each digit for each image, and the most probable digit.

func.func @main(
    %x: !loom.tensor<[0, 0] : [450, 64], f32>,
    %w1: !loom.tensor<[0, 0] : [64, 128], f32>,
    %b1: !loom.tensor<[0] : [128], f32>,
    %w2: !loom.tensor<[0, 0] : [128, 10], f32>,
    %b2: !loom.tensor<[0] : [10], f32>
) -> (!loom.tensor<[0, 0] : [450, 10], f32>, !loom.tensor<[0] : [450], i64>) {
  %z = weft.apply @linear(%x, %w1, %b1)
      : (!loom.tensor<[0, 0] : [450, 64], f32>, !loom.tensor<[0, 0] : [64, 128], f32>,
         !loom.tensor<[0] : [128], f32>) -> !loom.tensor<[0, 0] : [450, 128], f32>
  %h = weft.apply @gelu(%z)
      : (!loom.tensor<[0, 0] : [450, 128], f32>) -> !loom.tensor<[0, 0] : [450, 128], f32>
  %logits = weft.apply @linear(%h, %w2, %b2)
      : (!loom.tensor<[0, 0] : [450, 128], f32>, !loom.tensor<[0, 0] : [128, 10], f32>,
         !loom.tensor<[0] : [10], f32>) -> !loom.tensor<[0, 0] : [450, 10], f32>
  %probabilities = weft.apply @softmax(%logits) {axis = 1 : i64}
      : (!loom.tensor<[0, 0] : [450, 10], f32>) -> !loom.tensor<[0, 0] : [450, 10], f32>
  %class = weft.apply @argmax(%probabilities) {axis = 1 : i64}
      : (!loom.tensor<[0, 0] : [450, 10], f32>) -> !loom.tensor<[0] : [450], i64>
  func.return %probabilities, %class
      : !loom.tensor<[0, 0] : [450, 10], f32>, !loom.tensor<[0] : [450], i64>
}

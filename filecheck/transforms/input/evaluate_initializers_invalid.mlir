// RUN: irees opt %s -p irees-evaluate-initializers --verify-diagnostics

// expected-error @+1 {{a global of type complex<f32> cannot have an initial value}}
util.global private mutable @g : complex<f32>
util.initializer {
  %x = arith.constant 1.0 : f32
  %c = complex.create %x, %x : complex<f32>
  util.global.store %c, @g : complex<f32>
  util.return
}

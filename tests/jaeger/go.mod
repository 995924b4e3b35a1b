// SPDX-License-Identifier: MIT
module github.com/jaegertracing/jaeger/reads

go 1.24

require github.com/jaegertracing/jaeger v1.76.0

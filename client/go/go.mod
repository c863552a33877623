module firn.io/go/firn

go 1.19

require github.com/apache/thrift v0.17.0

module firn.example/firn/client/go

go 1.22

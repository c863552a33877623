module github.com/OWNER/firn/client/go

go 1.22

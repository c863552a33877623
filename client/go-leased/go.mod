module firn.example/firn/client/go-leased

go 1.22

require (
	firn.example/firn/client/go v0.2.0
	github.com/bwmarrin/snowflake v0.3.0
	github.com/sony/sonyflake v1.3.0
)

replace firn.example/firn/client/go => ../go

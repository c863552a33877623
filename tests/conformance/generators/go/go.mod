module generators

go 1.22

require (
	github.com/OWNER/firn/client/go v0.0.0
	github.com/bwmarrin/snowflake v0.3.0
	github.com/sony/sonyflake v1.3.0
)

replace github.com/OWNER/firn/client/go => ../../../../client/go

// This file says how the other files of the package are generated.

// Package feedpb contains the messages of the feed's gRPC service, generated from feed.proto. Other programs may import it.
// To generate it again, install protoc and protoc-gen-go v1.36.12, and run go generate here.
package feedpb

// FollowProcedure is the path of the method Follow, for clients without a generated stub.
const FollowProcedure = "/understudy.feed.v1.FeedService/Follow"

//go:generate protoc --go_out=. --go_opt=paths=source_relative feed.proto

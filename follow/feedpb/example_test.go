package feedpb_test

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"understudy/follow/feedpb"
)

func Example() {
	data, err := proto.Marshal(&feedpb.FollowResponse{Cursor: "41.mwy12pz1", Event: &feedpb.FollowResponse_Change{
		Change: &feedpb.Change{N: 41, Source: "twilio", Kind: "calls", Id: "CA1", What: feedpb.What_WHAT_CAME}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var event feedpb.FollowResponse
	if err := proto.Unmarshal(data, &event); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(event.GetCursor(), event.GetChange().GetWhat(), event.GetChange().GetId())
	// Output: 41.mwy12pz1 WHAT_CAME CA1
}

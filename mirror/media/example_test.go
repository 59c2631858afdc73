package media_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"understudy/mirror/media"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

const songs = `
name: songs
hosts: [{url: "https://api.example.com"}]
auth: {style: none}
kinds:
  - name: songs
    id: [id]
    fields: [{name: id}, {name: audio, type: media}]
    lists: [{path: /songs, key: songs}]
    instances: [{path: "/songs/{id}", id: [id]}]
    media: [{path: "/songs/{id}.mp3", id: [id], field: audio, types: [audio/mpeg]}]
`

// choir is an upstream whose contents all have the same words.
type choir struct{}

func (choir) Open(context.Context, request.MediaRequest) (*request.MediaResponse, error) {
	return &request.MediaResponse{ReadCloser: io.NopCloser(strings.NewReader("la la la")), Status: 200, Outcome: request.Cold}, nil
}

// open lets every reader in.
type open struct{}

func (open) Enter(uint64) error { return nil }
func (open) Exit(uint64)        {}

func Example() {
	sp, err := upstream.ReadSpec("songs.yaml", []byte(songs))
	if err != nil {
		fmt.Println(err)
		return
	}
	cache := media.New(media.Options{Readers: open{}})
	defer cache.Close()
	if err := cache.AddSource(&spec.Source{Name: "main", Spec: sp}, choir{}); err != nil {
		fmt.Println(err)
		return
	}
	target, err := sp.Resolve("main", "/songs/1.mp3", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	content, err := cache.Open(context.Background(), request.MediaRequest{Target: target})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	fmt.Println(content.Outcome, string(text), err)
	fmt.Printf("%+v\n", cache.Stats("main"))
	// Output:
	// cold la la la <nil>
	// {Requests:1 Warm:0 Stale:0 Cold:1 Failed:0 Kept:0 NotKept:0 Files:0 Bytes:0 Limit:0 FileLimit:0 Evicted:0 Forgotten:0}
}

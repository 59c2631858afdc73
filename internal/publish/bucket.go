// This file writes messages into a bucket, as files of JSON lines.

package publish

import (
	"context"
	"net/url"
	"strings"

	"understudy"
	"understudy/internal/store/contents"
	"understudy/internal/webhook"
)

// bucket writes into a folder of a bucket.
type bucket struct{ archive *contents.Archive }

func newBucket(u *url.URL, o Options) (Publisher, error) {
	key, secret, _ := strings.Cut(o.Secret.Reveal(), ":")
	s := contents.S3{URL: "s3://" + u.Host + "/" + strings.Trim(u.Path, "/") + "/x", Endpoint: u.Query().Get("endpoint"),
		Region: u.Query().Get("region"), Key: key, Secret: understudy.NewSecret(secret), Permitted: webhook.Guard(o.AllowPrivate)}
	archive, _, err := contents.OpenArchive(s, o.Now)
	return bucket{archive}, err
}

// Publish writes the messages as lines of one object. Its name begins with the day of the last message. The same messages have the same
// name, so a second attempt replaces the first.
func (b bucket) Publish(ctx context.Context, messages []Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	last := messages[len(messages)-1]
	var lines []byte
	for _, m := range messages {
		lines = append(append(lines, m.Data...), '\n')
	}
	return b.archive.PutBytes(ctx, last.At.UTC().Format("2006-01-02/150405.000000Z-")+last.ID+".jsonl", lines)
}

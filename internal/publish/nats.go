// This file publishes to a subject of NATS JetStream.

package publish

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// natsStream publishes to the stream that takes a subject.
type natsStream struct{ to broker }

// Publish sends each message as a request and waits until the stream has stored it. The stream ignores an
// id that it has got within its duplicate window, two minutes by default.
func (n natsStream) Publish(ctx context.Context, messages []Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	options := []nats.Option{
		nats.SetCustomDialer(contextDialer{ctx, n.to.dialer}), nats.NoReconnect(), nats.IgnoreDiscoveredServers(),
		nats.Timeout(sendTimeout / 3), nats.Name("understudy"),
	}
	if n.to.tls {
		options = append(options, nats.Secure(&tls.Config{ServerName: n.to.host, MinVersion: tls.VersionTLS12}))
	}
	if n.to.user != "" {
		options = append(options, nats.UserInfo(n.to.user, n.to.password))
	}
	conn, err := nats.Connect("nats://"+n.to.address, options...)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, m := range messages {
		sent := nats.NewMsg(n.to.topic)
		sent.Header.Set(nats.MsgIdHdr, m.ID)
		sent.Data = m.Data
		answer, err := conn.RequestMsgWithContext(ctx, sent)
		if errors.Is(err, nats.ErrNoResponders) {
			return fmt.Errorf("no stream takes the subject %s", n.to.topic)
		}
		if err != nil {
			return err
		}
		var stored struct {
			Stream string
			Error  *struct{ Description string }
		}
		if err := json.Unmarshal(answer.Data, &stored); err != nil || stored.Error != nil || stored.Stream == "" {
			return fmt.Errorf("the stream did not store a message: %.200q", answer.Data)
		}
	}
	return nil
}

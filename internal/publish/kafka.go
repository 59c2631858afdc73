// This file publishes to a topic of a broker that speaks Kafka's protocol.

package publish

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
)

// kafkaTopic publishes to a topic.
type kafkaTopic struct{ to broker }

// Publish sends the messages and waits until all replicas have them. Messages with the same key are in the same partition.
func (k kafkaTopic) Publish(ctx context.Context, messages []Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	transport := &kafka.Transport{DialTimeout: sendTimeout / 3, ClientID: "understudy",
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return k.to.dialer.DialContext(ctx, network, address)
		}}
	defer transport.CloseIdleConnections()
	if k.to.tls {
		transport.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if k.to.user != "" {
		transport.SASL = plain.Mechanism{Username: k.to.user, Password: k.to.password}
	}
	w := &kafka.Writer{Addr: kafka.TCP(k.to.address), Topic: k.to.topic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		BatchSize: len(messages), BatchTimeout: time.Millisecond, MaxAttempts: 1, Transport: transport}
	out := make([]kafka.Message, len(messages))
	for i, m := range messages {
		out[i] = kafka.Message{Key: []byte(m.Key), Value: m.Data, Time: m.At, Headers: []kafka.Header{{Key: "id", Value: []byte(m.ID)}}}
	}
	return errors.Join(w.WriteMessages(ctx, out...), w.Close())
}

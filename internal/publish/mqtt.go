// This file publishes to a topic of an MQTT 5 broker.

package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/eclipse/paho.golang/paho"
)

// mqttTopic publishes to a topic with QoS 1 (MQTT 5.0, 4.3.2).
type mqttTopic struct{ to broker }

// Publish sends each message and waits until the broker has taken it.
func (m mqttTopic) Publish(ctx context.Context, messages []Message) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	conn, err := m.to.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := paho.NewClient(paho.ClientConfig{Conn: conn, PacketTimeout: sendTimeout / 3})
	connect := &paho.Connect{CleanStart: true, KeepAlive: 60, Username: m.to.user, UsernameFlag: m.to.user != "",
		Password: []byte(m.to.password), PasswordFlag: m.to.password != ""}
	if answer, err := client.Connect(ctx, connect); err != nil {
		if answer != nil {
			return fmt.Errorf("the broker refused the connection: reason 0x%02x", answer.ReasonCode)
		}
		return err
	}
	defer func() { err = errors.Join(err, client.Disconnect(&paho.Disconnect{})) }()
	for _, one := range messages {
		properties := &paho.PublishProperties{ContentType: "application/json", User: paho.UserProperties{{Key: "id", Value: one.ID}}}
		answer, err := client.Publish(ctx, &paho.Publish{QoS: 1, Topic: m.to.topic, Payload: one.Data, Properties: properties})
		if err != nil {
			return err
		}
		if answer != nil && answer.ReasonCode >= 0x80 {
			return fmt.Errorf("the broker refused a message: reason 0x%02x", answer.ReasonCode)
		}
	}
	return nil
}

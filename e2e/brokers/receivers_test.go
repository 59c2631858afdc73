package brokers

import (
	"bytes"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"understudy/internal/checktest"
)

// message is a message that a receiver has stored.
type message struct{ id, data string }

// receiver is a broker or a bucket.
type receiver struct {
	url    string // with the address at which its connections can be cut
	secret string
	read   func() []message // those stored so far, in their order
	cut    *atomic.Bool     // while it is true, connections are closed
}

// cutListener is a listener whose new connections are closed while it is cut.
type cutListener struct {
	net.Listener
	cut *atomic.Bool
}

func (l cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && l.cut.Load() {
		_ = c.Close()
	}
	return c, err
}

// cutReader ends when it is cut.
type cutReader struct {
	io.Reader
	cut *atomic.Bool
}

func (r cutReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.cut.Load() {
		return 0, io.EOF
	}
	return n, err
}

// proxy returns an address whose connections lead to another one until cut is true.
func proxy(t *testing.T, to string, cut *atomic.Bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if cut.Load() {
				_ = c.Close()
				continue
			}
			d, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(d, cutReader{c, cut}); _ = d.Close() })
			all.Go(func() { _, _ = io.Copy(c, d); _ = c.Close() })
		}
	})
	return l.Addr().String()
}

// startNATS runs a NATS server with a stream.
func startNATS(t *testing.T) receiver {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Username: "understudy", Password: "secret"})
	checktest.MustNoError(t, err, "create the NATS server")
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	checktest.MustTrue(t, s.ReadyForConnections(patience), "the NATS server does not start")
	conn, err := nats.Connect(s.ClientURL(), nats.UserInfo("understudy", "secret"))
	checktest.MustNoError(t, err, "connect to NATS")
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	checktest.MustNoError(t, err, "JetStream")
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "CHANGES", Subjects: []string{"changes.>"}})
	checktest.MustNoError(t, err, "create the stream")
	cut := &atomic.Bool{}
	read := func() (all []message) {
		info, err := stream.Info(t.Context())
		checktest.MustNoError(t, err, "the stream")
		for n := uint64(1); n <= info.State.LastSeq; n++ {
			m, err := stream.GetMsg(t.Context(), n)
			checktest.MustNoError(t, err, "a message")
			all = append(all, message{m.Header.Get(nats.MsgIdHdr), string(m.Data)})
		}
		return all
	}
	return receiver{"nats://" + proxy(t, s.Addr().String(), cut) + "/changes.calls", "understudy:secret", read, cut}
}

// published collects what an MQTT broker gets.
type published struct {
	mqtt.HookBase
	mu  sync.Mutex
	all []message
}

func (p *published) ID() string           { return "published" }
func (p *published) Provides(b byte) bool { return b == mqtt.OnPublish }

// OnPublish is called before the broker confirms a message.
func (p *published) OnPublish(_ *mqtt.Client, one packets.Packet) (packets.Packet, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, message{one.Properties.User[0].Val, string(one.Payload)})
	return one, nil
}

// startMQTT runs an MQTT broker.
func startMQTT(t *testing.T) receiver {
	s, got, cut := mqtt.New(nil), &published{}, &atomic.Bool{}
	users := &auth.Ledger{Auth: auth.AuthRules{{Username: "understudy", Password: "secret", Allow: true}},
		ACL: auth.ACLRules{{Username: "understudy", Filters: auth.Filters{"changes/#": auth.WriteOnly}}}}
	checktest.MustNoError(t, s.AddHook(new(auth.Hook), &auth.Options{Ledger: users}), "the broker's users")
	checktest.MustNoError(t, s.AddHook(got, nil), "the broker's hook")
	at := listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:0"})
	checktest.MustNoError(t, s.AddListener(at), "the broker's address")
	checktest.MustNoError(t, s.Serve(), "the broker")
	t.Cleanup(func() { _ = s.Close() })
	read := func() []message {
		got.mu.Lock()
		defer got.mu.Unlock()
		return append([]message{}, got.all...)
	}
	return receiver{"mqtt://" + proxy(t, at.Address(), cut) + "/changes/calls", "understudy:secret", read, cut}
}

// startKafka runs a broker that speaks Kafka's protocol.
func startKafka(t *testing.T) receiver {
	cut := &atomic.Bool{}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "changes"), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "understudy", "secret"), kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			return cutListener{l, cut}, err
		}))
	checktest.MustNoError(t, err, "create the Kafka broker")
	t.Cleanup(c.Close)
	var all []message
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("changes"), kgo.SASL(plainAuth()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	checktest.MustNoError(t, err, "create the Kafka client")
	t.Cleanup(client.Close)
	read := func() []message {
		ctx, cancel := shortly(t)
		defer cancel()
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { all = append(all, message{string(r.Headers[0].Value), string(r.Value)}) })
		return all
	}
	return receiver{"kafka://" + c.ListenAddrs()[0] + "/changes", "understudy:secret", read, cut}
}

// startS3 runs a store of buckets.
func startS3(t *testing.T) receiver {
	backend, cut := s3mem.New(), &atomic.Bool{}
	checktest.MustNoError(t, backend.CreateBucket("lake"), "create the bucket")
	store := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(store.Close)
	read := func() (all []message) {
		list, err := backend.ListBucket("lake", &gofakes3.Prefix{HasPrefix: true, Prefix: "changes/"}, gofakes3.ListBucketPage{})
		checktest.MustNoError(t, err, "list the bucket")
		for _, one := range list.Contents {
			o, err := backend.GetObject("lake", one.Key, nil)
			checktest.MustNoError(t, err, "read an object")
			text, err := io.ReadAll(o.Contents)
			checktest.MustNoError(t, err, "read an object")
			for line := range bytes.Lines(text) {
				all = append(all, message{"", strings.TrimSpace(string(line))})
			}
		}
		return all
	}
	address := proxy(t, store.Listener.Addr().String(), cut)
	return receiver{"s3://lake/changes?endpoint=http://" + address, "key:secret", read, cut}
}

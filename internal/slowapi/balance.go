// Balance and tokens: two answers about an account that are no records.
package slowapi

import (
	"net/http"
	"net/url"
	"strconv"
)

// balance tells what is left on an account: what was paid in, less what
// everything cost. Like real ones it may fall below nothing.
func (s *Server) balance(_ *http.Request, t target, _ url.Values) (answer, error) {
	w := s.world
	w.mu.RLock()
	defer w.mu.RUnlock()
	spent := w.figuresOf(categoryNamed("totalprice"), []int{t.account}, w.wholeLife(t.account)).price
	paid := (spent/2_000_000+1)*2_000_000 + 12_345
	if t.account != 0 {
		paid = 0
	}
	var o object
	o.open()
	o.text("account_sid", w.accountSID(t.account))
	o.text("balance", decimal(paid-spent))
	o.text("currency", "USD")
	o.close()
	return answer{status: http.StatusOK, body: o.b}, nil
}

// iceServers are where a token lets its bearer go. The first asks for none.
var iceServers = []string{
	"stun:global.stun.twilio.com:3478",
	"turn:global.turn.twilio.com:3478?transport=udp",
	"turn:global.turn.twilio.com:3478?transport=tcp",
	"turn:global.turn.twilio.com:443?transport=tcp",
}

// newToken answers POST to Tokens with a user name and a real password. Nothing
// keeps them, and they open nothing here.
func (s *Server) newToken(_ *http.Request, t target, form url.Values) (answer, error) {
	ttl, ok := int64(86400), true
	if form.Has("Ttl") {
		ttl, ok = whole(form.Get("Ttl"))
	}
	if !ok || ttl == 0 || ttl > 86400 {
		return invalid("Ttl must be a number of seconds from 1 to 86400").answer(), nil
	}
	w := s.world
	w.mu.RLock()
	defer w.mu.RUnlock()
	d := drawFor(w.seed, tagSecrets<<8|0x544f, int64(t.account))
	user, password := string(d.hex(nil, 32)), string(d.hex(nil, 22))

	var o object
	o.open()
	o.text("account_sid", w.accountSID(t.account))
	o.date("date_created", w.now().Unix())
	o.date("date_updated", w.now().Unix())
	o.name("ice_servers")
	o.b = append(o.b, '[')
	for i, at := range iceServers {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.open()
		if i > 0 {
			o.text("credential", password)
			o.text("username", user)
		}
		o.text("url", at)
		o.text("urls", at)
		o.close()
	}
	o.b = append(o.b, ']')
	o.more = true
	o.text("password", password)
	o.text("ttl", strconv.FormatInt(ttl, 10))
	o.text("username", user)
	o.close()
	return answer{status: http.StatusCreated, body: o.b}, nil
}

var balanceRoutes = []route{
	{pattern: "Accounts/*/Balance", instance: true, serve: (*Server).balance, methods: "GET, HEAD"},
	{pattern: "Accounts/*/Tokens", instance: true, serve: (*Server).newToken, methods: "POST"},
}

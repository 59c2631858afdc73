// Messages: their parties, statuses, filters and writes.
package kinds

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
	"understudy/kit/charset"
)

// Messages are the messages of an account.
var Messages = &world.Kind{
	Name: "messages", Prefix: "SM", Tag: 'M', PrefixOf: mediaPrefix,
	Generate: generateMessage, Value: messageValue, Shape: "message",
	Count:     func(w *world.World) int64 { return 2 * w.Records },
	Lifecycle: messageLifecycle,
	Filters: slices.Concat(
		[]world.Filter{
			partyFilter("To", func(r *world.Row) fake.Party { return readMessage(r.World, r.Sequence, r.Index).to }),
			partyFilter("From", func(r *world.Row) fake.Party { return readMessage(r.World, r.Sequence, r.Index).from }),
		},
		world.TimeFilters("DateSent", true, "sent"),
	),
	Writes: world.Writes{Create: createMessage, Update: updateMessage, CanDelete: true}, Arrives: true, Retained: true,
	Edits: world.Edits{
		Finals: []string{"delivered", "received", "read", "sent", "undelivered", "failed", "canceled"}, Body: rewriteMessage,
	},
}

// message has the parties and the current status of a message. They are computed from the seed and from the changes
// to the message.
type message struct {
	progress  world.Progress
	direction string
	from, to  fake.Party
	service   bool // whether the message was sent through a messaging service
	whatsapp  bool
}

// MediaMessage returns the index of the message that has media. Each block of twenty messages has one.
func MediaMessage(seed uint64, block int64) int64 {
	d := fake.RngFor(seed, tagMedia, block)
	return block*20 + int64(d.IntBelow(20))
}

// choosePlan sets the direction of a message. It returns the statuses that the message goes through.
func (m *message) choosePlan(d *fake.Rng) []string {
	way, luck, odd := d.IntBelow(1000), d.IntBelow(1000), d.IntBelow(100)
	can := lifecycles()
	all := can.Sent
	switch m.whatsapp = odd < 2; {
	case way < 400:
		m.direction, all = "inbound", can.Received
	case way < 850:
		m.direction, all = "outbound-api", can.ByAPI
	case way < 990:
		m.direction = "outbound-reply"
	default:
		m.direction = "outbound-call"
	}
	if m.whatsapp && way >= 400 && luck < 600 {
		all = can.WhatsApp
	}
	plan := all.pick(luck)
	m.service = plan[0] == "accepted"
	return plan
}

// messageLifecycle computes the statuses of a message and how long they last. If a write created the message, its
// statuses depend on the form of the write.
func messageLifecycle(s *world.Sequence, i int64) world.Progress {
	d := s.Random(i)
	plan := new(message).choosePlan(&d)
	if s.IsCreatedByWrite(i) {
		switch form := s.History[i].Fields; {
		case form["ScheduleType"] == "fixed":
			plan = lifecycles().Scheduled
		case form["MessagingServiceSid"] != "":
			plan = lifecycles().ForService
		default:
			plan = lifecycles().Delivered
		}
	}
	short, hop, bill := int64(1+d.IntBelow(2)), int64(1+d.IntBelow(9)), int64(5+d.IntBelow(55))
	dwell := stateDurations(plan, bill, []stateDuration{{"queued", short}, {"sending", short}, {"accepted", short}, {"receiving", short},
		{"sent", hop}, {"scheduled", 900}}...)
	return world.Progress{Plan: plan, SecondsPerStep: dwell, Random: d}
}

// readMessage returns a message. If a write created the message, its parties come from the write, otherwise from the seed.
func readMessage(w *world.World, s *world.Sequence, i int64) (m message) {
	m.progress, m.direction = s.Progress(i), "outbound-api"
	if s.IsCreatedByWrite(i) {
		form := s.History[i].Fields
		m.to, m.from = fake.Party{Given: true, Text: form["To"]}, fake.Party{Given: true, Text: form["From"]}
		return m
	}
	first, d := s.Random(i), &m.progress.Random
	m.choosePlan(&first)
	us, them := fake.Party{Own: true, Index: int64(d.IntBelow(world.OwnNumbers))}, fake.PickPerson(d, w.People)
	odd := d.IntBelow(200)
	switch {
	case m.whatsapp:
		us.Prefix, them.Prefix = "whatsapp:", "whatsapp:"
	case odd < 2:
		us.Text = "72975" // this sender or recipient has a short code
	case odd < 4 && m.direction == "inbound":
		them.Text = "40404"
	case odd < 6 && m.direction != "inbound" && fake.HomeOf(w.Seed, them.Index).Code != "1":
		us.Text = "ACME" // this sender has a name in place of a number
	}
	m.from, m.to = us, them
	if m.direction == "inbound" {
		m.from, m.to = them, us
	}
	return m
}

// messageValue returns when a message was sent. Filters need no other value besides the parties.
func messageValue(_ *world.World, s *world.Sequence, i int64, _ string) any {
	p := s.Progress(i)
	return sendTime(&p)
}

// sendTime returns when a message was sent, was received or failed, in Unix seconds. It returns 0 if none of these
// has happened yet.
func sendTime(p *world.Progress) int64 {
	for _, status := range [...]string{"sent", "received", "failed"} {
		if t := p.StatusTime(status); t != 0 {
			return t
		}
	}
	return 0
}

// generateMessage computes the values of a message. Each segment has a price, which appears at the step after
// the final status.
func generateMessage(w *world.World, s *world.Sequence, i int64) table.Values {
	m, media := readMessage(w, s, i), mediaCount(s, i)
	v := table.Values{
		"created": m.progress.Created, "sent": sendTime(&m.progress), "updated": m.progress.UpdateTime(), "direction": m.direction, "service": "",
		"from": m.from.Name(w.Seed), "to": m.to.Name(w.Seed), "status": m.progress.Status(),
		"media": strconv.Itoa(media - deletedMediaCount(w, s, i)),
	}
	d := m.progress.Random
	why := incidents().Failures[d.IntBelow(len(incidents().Failures))]
	if v["status"] == "failed" || v["status"] == "undelivered" {
		v["error_code"], v["error_message"] = why.Code, why.Reason
	}
	if sid, set := s.WrittenValue(i, "MessagingServiceSid"); set {
		v["service"] = sid
	} else if m.service {
		one := fake.RngFor(w.Seed, tagServices, int64(d.IntBelow(2)))
		v["service"] = string(one.Hex([]byte("MG"), 16))
	}
	body, set := s.WrittenValue(i, "Body")
	if !set && !s.IsCreatedByWrite(i) {
		body = fake.Body(d, media > 0)
	}
	parts := 0
	if text, set := s.WrittenValue(i, "Segments"); set { // the number of segments stays the same when the body is emptied
		parts, _ = strconv.Atoi(text)
	} else {
		parts = charset.CountSMS(body).Segments
	}
	price, set := s.WrittenValue(i, world.EditedPrice)
	if !set && m.progress.IsPriced() {
		price = format.Money(m.segmentPrice(w) * int64(parts))
	}
	v["body"], v["segments"], v["price"] = body, strconv.Itoa(parts), price
	return v
}

// segmentPrice returns the price of one segment in hundred-thousandths of a dollar.
func (m *message) segmentPrice(w *world.World) int64 {
	if m.direction != "inbound" && m.to.Text == "" && !m.to.Given {
		return fake.HomeOf(w.Seed, m.to.Index).Cents
	}
	return 790
}

// mediaPrefix returns the prefix of the SID of a message that has media. It returns "" for any other message.
func mediaPrefix(s *world.Sequence, i int64) string {
	if mediaCount(s, i) > 0 {
		return "MM"
	}
	return ""
}

// rewriteMessage returns the values to set when the body of a message changes: the new body, and the number of
// segments of the old body.
func rewriteMessage(w *world.World, s *world.Sequence, i int64, body string) map[string]string {
	return map[string]string{"Segments": text(generateMessage(w, s, i), "segments"), "Body": body}
}

// createMessage parses the form of a POST that creates a message.
func createMessage(_ *world.World, _ *world.Sequence, form url.Values) (map[string]string, *format.Answer) {
	to, from, text, service := form.Get("To"), form.Get("From"), form.Get("Body"), form.Get("MessagingServiceSid")
	switch {
	case to == "":
		return nil, format.Refuse(http.StatusBadRequest, 21604, "A 'To' phone number is required.")
	case !isCallable(to):
		return nil, format.Refuse(http.StatusBadRequest, 21211, "Invalid 'To' Phone Number: "+to)
	case from != "" && !isCallable(from):
		return nil, format.Refuse(http.StatusBadRequest, 21212, "Invalid 'From' Phone Number: "+from)
	case len([]rune(text)) > 1600:
		return nil, format.Refuse(http.StatusBadRequest, 21617, "The concatenated message body exceeds the 1600 character limit")
	case service != "" && !format.IsSID(service, "MG"):
		return nil, format.Refuse(http.StatusBadRequest, 21701, "The Messaging Service does not exist: "+service)
	}
	fields := map[string]string{"To": to, "From": from, "Body": strings.ToValidUTF8(text, "\uFFFD")}
	if service != "" {
		fields["MessagingServiceSid"] = service
	}
	if form.Get("ScheduleType") == "fixed" && service != "" {
		fields["ScheduleType"] = "fixed"
	}
	if media := len(form["MediaUrl"]); media > maxMedia {
		return nil, format.Refuse(http.StatusBadRequest, 21623, "Number of media files exceeds allowed limit")
	} else if media > 0 {
		fields["MediaUrl"] = strconv.Itoa(media) // only the number of media is stored, not their URLs
	}
	return fields, nil
}

// updateMessage parses the form of a POST to a message. Such a POST can empty the body, or cancel a message that has
// not been sent yet.
func updateMessage(w *world.World, s *world.Sequence, i int64, form url.Values) (map[string]string, []string, *format.Answer) {
	status := form.Get("Status")
	p := s.Progress(i)
	switch {
	case form.Get("Body") != "":
		return nil, nil, format.NewInvalid("Body may only be set to an empty string")
	case status != "" && status != "canceled":
		return nil, nil, format.NewInvalid("Status is not valid: " + status)
	case status != "" && p.Status() != "scheduled" && p.Status() != "accepted" && p.Status() != "queued":
		return nil, nil, format.Refuse(http.StatusConflict, 30409, "Message is not in a cancelable state: "+p.Status())
	}
	fields, cut := map[string]string{}, []string(nil)
	if form.Has("Body") {
		fields = rewriteMessage(w, s, i, "")
	}
	if status == "canceled" {
		cut = []string{"canceled"}
	}
	return fields, cut, nil
}

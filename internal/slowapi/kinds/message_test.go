// Tests of messages: what they say, and writes.
package kinds_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestMessagesSayRealThings(t *testing.T) {
	t.Parallel()
	r := slowapitest.Start(t, slowapi.Options{Records: 2000})
	found := map[string]int{}
	media := 0
	for _, one := range r.Walk(root+"/Messages.json?PageSize=1000", nil) {
		text := one["body"].(string)
		if one["num_media"] == "1" {
			media++
		}
		if (one["num_media"] == "1") != strings.HasPrefix(one["sid"].(string), "MM") {
			t.Fatalf("%v has %v media", one["sid"], one["num_media"])
		}
		if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 1600 {
			t.Fatalf("body %q", text)
		}
		for name, has := range map[string]bool{
			"empty": text == "", "newline": strings.Contains(text, "\n"), "HTML": strings.Contains(text, "<b>"),
			"backslash": strings.Contains(text, `\`), "quote": strings.Contains(text, `"`), "long": len(text) > 700,
			"several segments": len(one["num_segments"].(string)) > 1 || one["num_segments"].(string) > "2",
			"emoji":            strings.ContainsAny(text, "👍📦🎉"),
		} {
			if has {
				found[name]++
			}
		}
		for name, script := range map[string]*unicode.RangeTable{
			"Arabic": unicode.Arabic, "Hebrew": unicode.Hebrew, "Han": unicode.Han, "Hiragana": unicode.Hiragana,
			"Hangul": unicode.Hangul, "Cyrillic": unicode.Cyrillic, "Thai": unicode.Thai, "Devanagari": unicode.Devanagari,
		} {
			if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(script, r) }) {
				found[name]++
			}
		}
	}
	if media != 200 {
		t.Errorf("%d of 4000 messages have media, want 200", media)
	}
	for _, name := range []string{"empty", "newline", "HTML", "backslash", "quote", "long", "several segments", "emoji", "Arabic", "Hebrew",
		"Han", "Hiragana", "Hangul", "Cyrillic", "Thai", "Devanagari"} {
		if found[name] == 0 {
			t.Errorf("no message with %s", name)
		}
	}
}

func TestMessageWrites(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	text := "שלום \"you\" <b>&</b>\n\\o/ 👍" + strings.Repeat("x", 100)
	made := r.Write("POST", root+"/Messages.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}, "Body": {text}}, 201)
	checktest.True(t, made["body"] == text, `made: made["body"] is %v`, made["body"])
	checktest.Equal(t, made["status"], "queued", `made: made["status"]`)
	checktest.Equal(t, made["num_segments"], "2", `made: made["num_segments"]`)
	checktest.MustTrue(t, made["date_sent"] == nil, `made: made["date_sent"] is %v`, made["date_sent"])
	checktest.MustTrue(t, made["price"] == nil, `made: made["price"] is %v`, made["price"])
	checktest.Equal(t, made["num_media"], "0", `made: made["num_media"]`)
	at := root + "/Messages/" + made["sid"].(string) + ".json"
	if got := r.Write("POST", at, url.Values{"Body": {""}}, 200); got["body"] != "" || got["num_segments"] != "2" {
		t.Errorf("emptied: %v", got)
	}
	if got := r.Write("POST", at, url.Values{"Status": {"canceled"}}, 200); got["status"] != "canceled" {
		t.Errorf("canceled: %v", got)
	}
	// One the seed made.
	old := root + "/Messages/" + r.Page(root + "/Messages.json").Records.SIDs()[9] + ".json"
	was := r.One(old)
	got := r.Write("POST", old, url.Values{"Body": {""}}, 200)
	checktest.Equal(t, got["body"], "", `emptied: got["body"]`)
	checktest.Equal(t, got["num_segments"], was["num_segments"], `emptied: got["num_segments"]`)
	checktest.Equal(t, got["price"], was["price"], `emptied: got["price"]`)
	checktest.True(t, got["date_updated"] != was["date_updated"], `emptied: got["date_updated"] is %v`,
		got["date_updated"])
	service := "MG" + strings.Repeat("a", 32)
	for form, want := range map[*url.Values]string{
		{"To": {"+1500"}, "MessagingServiceSid": {service}}:                            "accepted",
		{"To": {"+1500"}, "MessagingServiceSid": {service}, "ScheduleType": {"fixed"}}: "scheduled",
	} {
		got := r.Write("POST", root+"/Messages.json", *form, 201)
		checktest.True(t, got["status"] == want, `by a service: got["status"] is %v`, got["status"])
		checktest.True(t, got["messaging_service_sid"] == service, `by a service: got["messaging_service_sid"] is %v`,
			got["messaging_service_sid"])
		checktest.True(t, got["from"] == nil, `by a service: got["from"] is %v`, got["from"])
	}
	media := r.Write("POST", root+"/Messages.json", url.Values{"To": {"+1500"}, "MediaUrl": {"https://example.com/1",
		"https://example.com/2"}}, 201)
	if media["num_media"] != "2" || !strings.HasPrefix(media["sid"].(string), "MM") {
		t.Errorf("with media: %v", media)
	}
	r.Get(root + "/Messages/" + media["sid"].(string) + ".json")
	r.Write("DELETE", old, nil, 204)
	if status, _, _ := r.Ask("GET", old, nil); status != 404 {
		t.Errorf("a deleted message: %d", status)
	}
}

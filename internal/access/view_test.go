// Views: what is hidden, what stays, byte for byte.

package access

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

func TestMask(t *testing.T) {
	for text, want := range map[string]string{
		"+14155551234":          "********1234",
		"+1 (415) 555-1234":     "********1234",
		"(305) 141-6799":        "********6799",
		"12345678":              "********5678",
		"030/123456-78":         "********5678",
		"1234567":               "********",
		"+1234567":              "********",
		"":                      "********",
		"447":                   "********",
		"sip:+14155551234@x.co": "********",
		"client:14155551234":    "********",
		"whatsapp:+14155551234": "********",
		"1415555+1234":          "********",
		"14155551234x9":         "********",
		"Ada Lovelace 12345678": "********",
		"١٢٣٤٥٦٧٨٩":             "********",
		"\u200e+14155551234":    "********",
		"+1415555\n1234":        "********",
		"anonymous":             "********",
		"1234567 ":              "********",
		"12345678 ()":           "********5678",
	} {
		if got := string(query.AppendLast4([]byte(mask), text)); got != want {
			t.Errorf("%q is masked as %q, want %q", text, got, want)
		}
	}
}

func TestView(t *testing.T) {
	roles := Roles{
		"support": {"twilio": support["twilio"], "forge": {"*": "see", "phone": "last4", "body": "hide"}},
		"calls":   {"twilio": {"calls": "see"}},
		"noids":   {"twilio": {"*": "see", "calls.sid": "hide"}},
		"names":   {"forge": {"*": "see", "people.profile": "hide", "people.profile.first": "last4", "people.tags": "hide"}},
		"masked":  {"forge": {"*": "last4"}},
	}
	for _, test := range []struct {
		name, role, source, kind string
		list                     bool
		body, want               string
	}{
		{"a list, masked", "support", "twilio", "calls", true,
			`{"calls": [{"sid":"CA1", "from":"+14155551234","to":null,"forwarded_from":"447"}, {}],"end":0,"uri":"/x?a=b"}`,
			`{"calls": [{"sid":"CA1", "from":"********1234","to":null,"forwarded_from":"********"}, {}],"end":0,"uri":"/x?a=b"}`},
		{"hidden is null whatever its type", "support", "twilio", "messages", false,
			`{"body":"text","num_media":"0","from":{"a":1},"to":["+14155551234"]}`,
			`{"body":null,"num_media":"0","from":null,"to":["********1234"]}`},
		{"unknown fields and envelope keys", "support", "twilio", "messages", true,
			`{"messages":[{"sid":"SM1","new_thing":"x","deep":{"sid":"y"},"n":1,"t":true}],"total":9,"meta":{"uri":"x"}}`,
			`{"messages":[{"sid":"SM1","new_thing":null,"deep":null,"n":null,"t":null}],"total":null,"meta":null}`},
		{"unknown leaves inside a known object", "support", "twilio", "messages", false,
			`{"subresource_uris":{"media":"/m","other":"/o","feedback":{"x":"y"}}}`,
			`{"subresource_uris":{"media":"/m","other":null,"feedback":null}}`},
		{"escaped names", "support", "twilio", "messages", false,
			`{"\u0062ody":"text","fr\u006fm":"+14155551234","s\u0069d":"SM1","\u0053id":"x"}`,
			`{"\u0062ody":null,"fr\u006fm":"********1234","s\u0069d":"SM1","\u0053id":null}`},
		{"names in another case", "support", "twilio", "messages", false, `{"SID":"x","Body":"text"}`, `{"SID":null,"Body":null}`},
		{"a name there twice", "support", "twilio", "messages", false, `{"body":"a","body":"b","sid":"x"}`,
			`{"body":null,"body":null,"sid":"x"}`},
		{"escaped values", "support", "twilio", "calls", false, `{"from":"\u002b14155551234","to":"\"12345678"}`,
			`{"from":"********1234","to":"********"}`},
		{"white space stays", "support", "twilio", "messages", false, " {\n\t\"body\" : \"x\" ,\r\n \"sid\":\"y\" } \n",
			" {\n\t\"body\" : null ,\r\n \"sid\":\"y\" } \n"},
		{"one kind alone", "calls", "twilio", "calls", true, `{"calls":[{"from":"+14155551234"}],"page":0}`,
			`{"calls":[{"from":"+14155551234"}],"page":0}`},
		{"ids hidden: links go too", "noids", "twilio", "calls", true,
			`{"calls":[{"sid":"CA1","status":"busy"}],"next_page_uri":"/x?PageToken=PACA1","page":1}`,
			`{"calls":[{"sid":null,"status":"busy"}],"next_page_uri":null,"page":1}`},
		{"secrets in answers that slipped through", "support", "twilio", "accounts", false, `{"sid":"AC1","auth_token":"t"}`,
			`{"sid":"AC1","auth_token":null}`},
		{"list in an object, envelope by class", "support", "forge", "people", true,
			`{"meta":{"people":[{"sid":"1","phone":12345678,"age":7}],"next_url":"u","secret":"s","total":3},"owner_phone":"+14155551234",` +
				`"key":"k"}`,
			`{"meta":{"people":[{"sid":"1","phone":null,"age":7}],"next_url":"u","secret":null,"total":3},"owner_phone":"********1234","key":null}`},
		{"bare array", "support", "forge", "people", true, `[{"sid":"1","phone":"447"},"x",{"x":"y"},["z"]]`,
			`[{"sid":"1","phone":"********"},null,{"x":null},[null]]`},
		{"derived and nested", "support", "forge", "people", false,
			`{"phone_pretty":"+1 415 555 1234","links":{"self":"/p/14155551234","x":"y"},"profile":{"first":"Ada","card":{"number":"14155551234",` +
				`"pin":"1"}},"tags":[{"name":"a","id":1},{"name":"b"}],"aliases":["x",["y"],{"z":1}],"password":"p"}`,
			`{"phone_pretty":"********1234","links":{"self":"********","x":null},"profile":{"first":"Ada","card":{"number":"********1234",` +
				`"pin":null}},"tags":[{"name":"a","id":null},{"name":"b"}],"aliases":["x",["y"],null],"password":null}`},
		{"a hidden object with one field shown", "names", "forge", "people", false,
			`{"profile":{"first":"Ada","card":{"number":"1"}},"tags":[{"name":"a"}]}`, `{"profile":{"first":"********","card":null},"tags":null}`},
		{"last4 of other types", "masked", "forge", "people", false, `{"sid":"1","age":12345678,"aliases":[true,1,null,"x"]}`,
			`{"sid":"********","age":null,"aliases":[null,null,null,"********"]}`},
		{"one record where a list was asked (a create)", "support", "twilio", "messages", true, `{"sid":"SM1","body":"x","to":"+14155551234"}`,
			`{"sid":"SM1","body":null,"to":"********1234"}`},
		{"a list key that holds no list", "support", "twilio", "messages", true, `{"messages":{"body":"x"},"sid":"y"}`,
			`{"messages":null,"sid":"y"}`},
		{"a string", "support", "twilio", "messages", false, `"text"`, `null`},
		{"a path the spec does not name", "support", "twilio", "", false, `{"sid":"x","a":{"b":1},"c":null}`, `{"sid":null,"a":null,"c":null}`},
		{"a list of an unnamed path", "support", "twilio", "", false, `[{"sid":"x"},1]`, `[{"sid":null},null]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := gate(t, roles)
			p := page(test.source, test.kind, test.list, 200, test.body)
			for _, round := range []string{"made", "remembered"} {
				v, err := g.MakeView(as(test.role), p)
				if err != nil {
					t.Fatal(err)
				}
				if string(v.Body) != test.want {
					t.Errorf("%s:\n got %s\nwant %s", round, v.Body, test.want)
				}
				if v.Unredacted != (test.want == test.body) || v.Unredacted && &v.Body[0] != &p.Body[0] {
					t.Errorf("%s: whole is %v", round, v.Unredacted)
				}
				if v.Sum != bodySum(v.Body) {
					t.Errorf("%s: the sum is not the body's", round)
				}
			}
			{
				v, err := g.MakeView(as("all"), p)
				checktest.MustNoError(t, err, "all")
				checktest.True(t, v.Unredacted, "all: v.Unredacted is false")
				checktest.Equal(t, string(v.Body), test.body, "all: string(v.Body)")
			}
		})
	}
}

func TestViewIsForgottenWithItsPage(t *testing.T) {
	g := gate(t, Roles{"support": support})
	c := as("support")
	first, _ := g.MakeView(c, page("twilio", "messages", false, 200, `{"sid":"1","body":"x"}`))
	second, _ := g.MakeView(c, page("twilio", "messages", false, 200, `{"sid":"2","body":"x"}`))
	if string(first.Body) == string(second.Body) {
		t.Fatal("another version of the page, the same view")
	}
	again, _ := g.MakeView(c, page("twilio", "messages", false, 200, `{"sid":"1","body":"x"}`))
	if again != first {
		t.Error("the view was not remembered")
	}
	// The same bytes as another kind or as a list are another view.
	other, _ := g.MakeView(c, page("twilio", "calls", false, 200, `{"sid":"1","body":"x"}`))
	if other == first {
		t.Error("a view crossed kinds")
	}
}

func TestCacheIsBounded(t *testing.T) {
	specs := map[string]*spec.Spec{"twilio": twilio(t)}
	g, err := NewWith(Options{Specs: specs, Roles: Roles{"support": support}, Cache: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		body := `{"sid":"` + strings.Repeat("x", i) + `","body":"x"}`
		if _, err := g.MakeView(as("support"), page("twilio", "messages", false, 200, body)); err != nil {
			t.Fatal(err)
		}
		if w := g.views.views.Weight(); w > 100_000 {
			t.Fatalf("views weigh %d bytes", w)
		}
	}
	none, err := NewWith(Options{Specs: specs, Roles: Roles{"support": support}, Cache: -1})
	if err != nil {
		t.Fatal(err)
	}
	p := page("twilio", "messages", false, 200, `{"body":"x"}`)
	a, _ := none.MakeView(as("support"), p)
	b, _ := none.MakeView(as("support"), p)
	if a == b {
		t.Error("remembered a view without a cache")
	}
}

func TestUpstreamErrorsAreMadeAnew(t *testing.T) {
	g := gate(t, Roles{"support": {"twilio": support["twilio"], "forge": {"*": "see"}}})
	secret := "the number +14155551234 is not yours"
	for _, test := range []struct {
		source string
		status int
		body   string
		want   string
	}{
		{"twilio", 404, `{"code":20404,"message":"` + secret + `","more_info":"x","status":404}`,
			`{"code":20404,"message":"The requested resource /x was not found","more_info":"https://www.twilio.com/docs/errors/20404",` +
				`"status":404}`},
		{"twilio", 400, `{"code":21211,"message":"` + secret + `","status":400}`,
			`{"code":21211,"message":"Bad Request","more_info":"https://www.twilio.com/docs/errors/21211","status":400}`},
		{"twilio", 400, `{"code":14155551234,"message":"x"}`,
			`{"code":20001,"message":"Bad Request","more_info":"https://www.twilio.com/docs/errors/20001","status":400}`},
		{"twilio", 400, `{"code":"` + secret + `"}`, `{"code":20001,"message":"Bad Request",` +
			`"more_info":"https://www.twilio.com/docs/errors/20001","status":400}`},
		{"twilio", 500, secret, `{"code":20500,"message":"An internal server error has occurred",` +
			`"more_info":"https://www.twilio.com/docs/errors/20500","status":500}`},
		{"twilio", 429, ``, `{"code":20429,"message":"Too Many Requests","more_info":"https://www.twilio.com/docs/errors/20429","status":429}`},
		{"twilio", 302, secret, `{"code":20001,"message":"Found","more_info":"https://www.twilio.com/docs/errors/20001","status":302}`},
		{"forge", 410, `{"error":{"no":7,"text":"` + secret + `"}}`, `{"error":{"no":7,"text":"Gone"},"http":410}`},
		{"forge", 409, `{"error":{"no":-7}}`, `{"error":{"no":409,"text":"Conflict"},"http":409}`},
	} {
		p := page(test.source, "", false, test.status, test.body)
		v, err := g.MakeView(as("support"), p)
		checktest.MustNoError(t, err, "")
		checktest.Equal(t, string(v.Body), test.want, "string(v.Body)")
		checktest.True(t, !v.Unredacted, "v.Unredacted is true")
		if v.ContentType != "application/json" || v.Rows() != nil {
			t.Errorf("content type %q, rows %v", v.ContentType, v.Rows())
		}
		{
			v, err := g.MakeView(as("all"), p)
			checktest.MustNoError(t, err, "all does not see upstream's own error")
			checktest.True(t, v.Unredacted, "all does not see upstream's own error: v.Unredacted is false")
			checktest.Equal(t, string(v.Body), test.body, "all does not see upstream's own error: string(v.Body)")
		}
	}
}

func TestViewOfWhatIsNotJSON(t *testing.T) {
	g := gate(t, Roles{"support": support})
	for _, body := range []string{"<Calls/>", `{"sid":"x"`, "\xef\xbb\xbf{}", "RIFF"} {
		if _, err := g.MakeView(as("support"), page("twilio", "calls", true, 200, body)); !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%q: %v", body, err)
		}
		if v, err := g.MakeView(as("all"), page("twilio", "calls", true, 200, body)); err != nil || string(v.Body) != body {
			t.Errorf("all, %q: %v", body, err)
		}
	}
	v, err := g.MakeView(as("support"), page("twilio", "calls", false, 204, ""))
	checktest.MustNoError(t, err, "no content")
	checktest.MustEqual(t, len(v.Body), 0, "no content: len(v.Body)")
	checktest.True(t, v.Unredacted, "no content: v.Unredacted is false")
}

func TestAnswerOfAWriteHasNoKey(t *testing.T) {
	g := gate(t, Roles{"support": support})
	p := page("twilio", "messages", false, 201, `{"sid":"SM1","body":"x"}`)
	p.Key = understudy.Key{}
	c := as("support")
	c.Source = "twilio"
	v, err := g.MakeView(c, p)
	if err != nil || string(v.Body) != `{"sid":"SM1","body":null}` {
		t.Fatalf("%s, %v", v.Body, err)
	}
	if _, err := g.MakeView(as("support"), p); !errors.Is(err, understudy.ErrForbidden) {
		t.Errorf("a page of nowhere, a caller of every source: %v", err)
	}
}

func FuzzView(f *testing.F) {
	for _, seed := range []string{
		`{"calls":[{"sid":"CA1","from":"+14155551234","hidden":"MARK"}],"MARK":"MARK"}`,
		`{"body":"MARK","subresource_uris":{"media":"x","MARKx":["MARK"]}}`, `["MARK",{"body":"MARK"}]`, `"MARK"`,
		`{"b\u006fdy":"MARK"}`, ` {"messages" : [ ] , "end":0} `, `{"messages":[{"body":"\u004dARK"}]}`, `{"":{"":[[]]}}`, `1`, `{"body":`,
	} {
		f.Add([]byte(seed))
	}
	s := twilio(f)
	g, err := NewWith(Options{Specs: map[string]*spec.Spec{"twilio": s},
		Roles: Roles{"support": support, "none": {"twilio": {"messages.sid": "last4"}}}, Cache: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, list := range []bool{true, false} {
			p := page("twilio", "messages", list, 200, string(body))
			v, err := g.MakeView(as("none"), p)
			if _, docErr := jsonspan.Parse(body); (docErr == nil) != (err == nil) && len(body) > 0 {
				t.Fatalf("document: %v, view: %v", docErr, err)
			}
			if err != nil || len(body) == 0 {
				continue
			}
			if !json.Valid(v.Body) {
				t.Fatalf("made %q of %q", v.Body, body)
			}
			var have, was any
			if json.Unmarshal(v.Body, &have) != nil || json.Unmarshal(body, &was) != nil {
				continue // numbers out of range
			}
			onlyNulls(t, have, list)
			v, err = g.MakeView(as("support"), p)
			if err != nil || !json.Valid(v.Body) {
				t.Fatalf("made %q of %q: %v", v.Body, body, err)
			}
			if v.Unredacted && string(v.Body) != string(body) {
				t.Fatal("whole, but changed")
			}
			v.Rows()
		}
	})
}

// onlyNulls fails when a value other than null, or a mask under a sid, is left
// in a view that shows nothing but masked sids and the envelope.
func onlyNulls(t *testing.T, v any, list bool) {
	t.Helper()
	shown := map[string]bool{"sid": true, "messages": true}
	if list {
		for _, name := range []string{"end", "page", "page_size", "start"} {
			shown[name] = true
		}
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			onlyNulls(t, e, list)
		}
	case map[string]any:
		for name, e := range v {
			if shown[name] && e != nil {
				if _, is := e.(string); is && name == "sid" {
					if !strings.HasPrefix(e.(string), mask) {
						t.Fatalf("sid is %q", e)
					}
					continue
				}
				if name == "messages" {
					onlyNulls(t, e, list)
				}
				continue
			}
			if e != nil {
				t.Fatalf("%s is %v", name, e)
			}
		}
	case nil:
	default:
		t.Fatalf("%v is left", v)
	}
}

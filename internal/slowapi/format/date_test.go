package format

import (
	"testing"
	"time"
)

func TestDateForms(t *testing.T) {
	second := func(text string) Span {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return Span{From: at.Unix(), Until: at.Unix() + 1}
	}
	day := second("2019-08-08T00:00:00Z").From
	for value, want := range map[string]Span{
		"2019-08-08":                   {From: day, Until: day + 86400},
		"2019-08":                      {From: day - 7*86400, Until: day + 24*86400},
		"2019":                         {From: day - 219*86400, Until: day + 146*86400},
		"2020-02":                      {From: day + 177*86400, Until: day + 206*86400},
		"2019-08-08T10:11:12Z":         second("2019-08-08T10:11:12Z"),
		"2019-08-08T10:11:12+02:00":    second("2019-08-08T08:11:12Z"),
		"2019-08-08T10:11:12-0800":     second("2019-08-08T18:11:12Z"),
		"2019-08-08T10:11:12.000-0800": second("2019-08-08T18:11:12Z"),
		"2019-08-08T10:11:12.999Z":     second("2019-08-08T10:11:12Z"),
		"2019-08-08T10:11:12":          second("2019-08-08T10:11:12Z"),
		"2019-06-11 22:05:25.000":      second("2019-06-11T22:05:25Z"),
		"06/11/2019 22:05:25 MST":      second("2019-06-12T05:05:25Z"),
		"06/11/2019 22:05:25 UTC":      second("2019-06-11T22:05:25Z"),
		"2019-06-11 22:05:25.000 PDT":  second("2019-06-12T05:05:25Z"),
	} {
		if got, ok := ParseDate(value); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", value, got, ok, want)
		}
	}
}

func FuzzDate(f *testing.F) {
	for _, seed := range []string{"2019", "2019-08", "2019-08-08", "2019-08-08T10:11:12.5-0800", "06/11/2019 22:05:25 MST", "9999-12-31",
		"0000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got, ok := ParseDate(value); ok && got.Until <= got.From {
			t.Fatalf("%q covers %v", value, got)
		}
	})
}

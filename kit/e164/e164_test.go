// Countries: the examples are the numbers that numbering plans keep free for them, or
// those that Google's libphonenumber gives as examples.

package e164

import "testing"

func TestCountry(t *testing.T) {
	for digits, want := range map[string]string{
		"14155550100": "US", "12125550123": "US", "14165550199": "CA", "18675550100": "CA", "17875550100": "PR", "18095550100": "DO",
		"12425550100": "BS", "18765550100": "JM", "18005550199": "", "18885550100": "",
		"442079460018": "GB", "441481256789": "GG", "441534456789": "JE", "441624756789": "IM", "447400123456": "GB",
		"4930123456": "DE", "390212345678": "IT", "390669812345": "VA", "4721234567": "NO", "4779123456": "SJ",
		"79123456789": "RU", "77123456789": "KZ", "358412345678": "FI", "358181234567": "AX", "35312345678": "IE",
		"262262161234": "RE", "262269601234": "YT", "5993181234": "BQ", "59994351234": "CW", "61212345678": "AU", "61891641234": "CX",
		"212520123456": "MA", "212528812345": "EH", "3831234567": "XK", "672312345": "NF",
		"882161234567": "", "80012345678": "", "0": "", "": "", "1": "US", "44": "GB", "2": "", "99912345": "",
	} {
		if got := Country(digits); got != want {
			t.Errorf("%s is of %q, want %q", digits, got, want)
		}
	}
}

// No beginning is given twice, and none is longer than what is looked at.
func TestBeginnings(t *testing.T) {
	all := byBeginning()
	if len(all) < 300 {
		t.Fatalf("%d beginnings", len(all))
	}
	for digits, country := range all {
		if len(digits) > longest || len(country) != 2 && country != "" {
			t.Errorf("%q is of %q", digits, country)
		}
	}
}

func BenchmarkCountry(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Country("14155550100")
	}
}

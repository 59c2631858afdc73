// What messages say: many languages, scripts, lengths and awkward characters.
package fake

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// texts are what people and programs write. {n} is a name, {c} a code, {t} a
// time of day, {a} an amount.
var texts = []string{
	"Your verification code is {c}. It expires in 10 minutes.",
	"{c} is your sign-in code. Do not share it with anyone.",
	"Hi {n}, your appointment is tomorrow at {t}. Reply YES to confirm or NO to cancel.",
	"Yes",
	"NO",
	"STOP",
	"ok thx",
	"Running late, be there at {t}",
	"Order {c} has shipped! It should arrive today before {t}. 📦",
	"Thanks {n}! 🎉🎉 See you on the 24th",
	"👍",
	"👨‍👩‍👧‍👦 table for four at {t}? 🇨🇭🍝",
	"❤️",
	"Your driver {n} is 5 minutes away 🚗💨",
	"Payment of ${a} received. Thank you!",
	"Ihre Rechnung über {a} € ist jetzt fällig. Bitte überweisen Sie bis Freitag. Grüße, {n}",
	"Bonjour {n}, votre colis n° {c} est arrivé. À bientôt à {t} !",
	"¿Sigues ahí? Llámame cuando puedas, es sobre el pedido {c}",
	"Olá {n}, sua consulta está marcada para às {t}. Até amanhã!",
	"Cześć {n}, Twoje zamówienie {c} jest już gotowe do odbioru.",
	"Здравствуйте, {n}! Ваш код подтверждения: {c}",
	"Το ραντεβού σας επιβεβαιώθηκε για τις {t}.",
	"مرحبا {n}، رمز التحقق الخاص بك هو {c}. لا تشاركه مع أي شخص.",
	"تم تأكيد موعدك غدًا الساعة {t} ✅",
	"שלום {n}, התור שלך נקבע לשעה {t}. להתראות!",
	"קוד האימות שלך: {c}",
	"您的验证码是{c},请在5分钟内输入。如非本人操作,请忽略。",
	"{n}様、ご予約ありがとうございます。明日{t}にお待ちしております。",
	"배송이 완료되었습니다. 주문번호 {c} 😊",
	"नमस्ते {n}, आपका ऑर्डर {c} भेज दिया गया है।",
	"รหัส OTP ของคุณคือ {c}",
	"Shopping list:\n- 2 × milk\n- bread\n- \"good\" olive oil\n\nThanks, {n}",
	"Line one\r\nLine two\r\n\tindented line three",
	"<b>Sale!</b> 20% off &amp; free shipping: <a href=\"https://example.com/s?x={c}&y=1\">shop now</a>",
	"<script>alert('{c}')</script>",
	"</textarea>\"'><img src=x onerror=alert({c})>",
	"The log is in C:\\Users\\{n}\\logs\\{c}.txt, look for \\n and \"quoted\" text",
	"{\"event\":\"door\",\"code\":\"{c}\",\"open\":true}",
	"100% of O'Brien's \"team\" said: it's fine; DROP TABLE messages; --",
	"https://example.com/track/{c}?utm_source=sms&utm_campaign=spring#top",
	"Price: £{a} / €{a} / ¥{c}",
	"zero\u200bwidth and a right-to-left \u202emark\u202c, {n}",
	"e\u0301 is not é, but looks it. {n}",
	"Line separator\u2028between, paragraph separator\u2029too",
	"𝒜 letter beyond the first plane, and 🀄 {c}",
	"  leading and trailing spaces, {n}  ",
	"Reminder: {n}'s prescription {c} is ready for pick-up. Open until {t}.",
	"Alarm at site {c}: temperature above limit since {t}. Call the desk.",
	"Your balance is ${a}.",
	"Pick you up at {t}?",
	"can you call me back pls",
	"On my way!",
	"Invoice {c} for ${a} is attached.",
	"We missed you at {t}. Reply with a time that suits you, {n}.",
}

// longTexts fill several segments.
var longTexts = []string{
	"Hello {n}, this is a summary of your booking {c}. Arrival is on Thursday from {t}, and departure is on Sunday until noon. The key " +
		"is in the box beside the blue door; its code is sent an hour before you arrive. Please tell us if you need a cot, a parking space " +
		"or breakfast. ",
	"Guten Tag {n}, wegen des Sturms fällt der Zug um {t} heute aus. Ihre Fahrkarte {c} gilt für alle späteren Züge, auch über andere " +
		"Strecken. Für Übernachtungen erstatten wir bis {a} € gegen Vorlage der Belege. Wir bitten um Entschuldigung für die " +
		"Unannehmlichkeiten. ",
	"ご利用ありがとうございます。{n}様のご注文{c}について、お届け時間が{t}に変更になりました。ご不明な点がございましたら、お気軽にお問い合わせください。",
	"عزيزنا {n}، نود إبلاغكم بأن موعد التسليم للطلب رقم {c} قد تغير إلى الساعة {t}. نعتذر عن أي إزعاج ونشكركم على صبركم وتفهمكم. ",
}

// Names are what people are called.
var Names = []string{"Ana", "Bao", "Chloé", "Dmitri", "Eszter", "Fatima", "Goran", "Hana", "Ingrid", "José", "Kofi", "Lucía", "Mei", "Noa",
	"O'Brien", "Priya", "Quentin", "Renée", "Søren", "Tomás", "Uma", "Vera", "Wanjiru", "Xin", "Yusuf", "Zoë"}

// Body is what a message says. Those with media may say nothing at all.
func Body(d Rng, media bool) string {
	kind := d.Below(100)
	pick := d.Next()
	switch {
	case media && kind < 40, kind == 99:
		return ""
	case kind < 92:
		return fill(texts[pick%uint64(len(texts))], &d)
	}
	text := longTexts[pick%uint64(len(longTexts))]
	return limit(fill(strings.Repeat(text, 1+d.Below(5)), &d), 1600)
}

// fill puts names, codes, times and amounts into a text.
func fill(text string, d *Rng) string {
	if !strings.Contains(text, "{") {
		return text
	}
	name := Names[d.Below(len(Names))]
	code := strconv.Itoa(100000 + d.Below(900000))
	clock := strconv.Itoa(8+d.Below(12)) + ":" + strconv.Itoa(10*(1+d.Below(5)))
	amount := strconv.Itoa(1+d.Below(900)) + "." + strconv.Itoa(10+d.Below(90))
	return strings.NewReplacer("{n}", name, "{c}", code, "{t}", clock, "{a}", amount).Replace(text)
}

// limit cuts a text after so many characters.
func limit(text string, characters int) string {
	n := 0
	for at := range text {
		if n == characters {
			return text[:at]
		}
		n++
	}
	return text
}

// gsm are the characters of GSM 03.38 that cost one septet, gsmTwice those that
// cost two.
const (
	gsm = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ " +
		"!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmTwice = "\f^{}\\[~]|€"
)

// Segments is how many parts a text is sent in: 160 septets in one part or 153
// in each of several, and 70 or 67 UTF-16 units when it does not fit GSM 03.38.
// Neither a surrogate pair nor an escaped septet is cut.
func Segments(text string) int {
	var septets, units []int
	fits := true
	for _, r := range text {
		units = append(units, utf16.RuneLen(r))
		switch {
		case strings.ContainsRune(gsm, r):
			septets = append(septets, 1)
		case strings.ContainsRune(gsmTwice, r):
			septets = append(septets, 2)
		default:
			fits = false
		}
	}
	if fits {
		return parts(septets, 160, 153)
	}
	return parts(units, 70, 67)
}

func parts(sizes []int, one, each int) int {
	n, at, whole := 1, 0, 0
	for _, size := range sizes {
		whole += size
		if at+size > each {
			n, at = n+1, 0
		}
		at += size
	}
	if whole <= one {
		return 1
	}
	return n
}

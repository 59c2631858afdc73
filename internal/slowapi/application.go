// Applications: which webhooks calls and messages are told to.
package slowapi

// seededApplications is how many the main account begins with.
const seededApplications = 6

var applications = cards("applications", "AP", tagApplications, seededApplications, &layout{
	path: "Applications",
	columns: []column{
		{"account_sid", accountColumn},
		{"api_version", text("ApiVersion")},
		{"date_created", createdColumn},
		{"date_updated", updatedColumn},
		{"friendly_name", text("FriendlyName")},
		{"message_status_callback", textOrNull("MessageStatusCallback")},
		{"public_application_connect_enabled", truth("PublicApplicationConnectEnabled")},
		{"sid", sidColumn},
		{"sms_fallback_method", text("SmsFallbackMethod")},
		{"sms_fallback_url", textOrNull("SmsFallbackUrl")},
		{"sms_method", text("SmsMethod")},
		{"sms_status_callback", textOrNull("SmsStatusCallback")},
		{"sms_url", textOrNull("SmsUrl")},
		{"status_callback", textOrNull("StatusCallback")},
		{"status_callback_method", text("StatusCallbackMethod")},
		{"uri", uriColumn},
		{"voice_caller_id_lookup", truth("VoiceCallerIdLookup")},
		{"voice_fallback_method", text("VoiceFallbackMethod")},
		{"voice_fallback_url", textOrNull("VoiceFallbackUrl")},
		{"voice_method", text("VoiceMethod")},
		{"voice_url", textOrNull("VoiceUrl")},
	},
	may: map[string][]string{
		"FriendlyName": nil, "ApiVersion": {"2008-08-01", apiVersion},
		"VoiceUrl": nil, "VoiceFallbackUrl": nil, "StatusCallback": nil, "SmsUrl": nil, "SmsFallbackUrl": nil, "SmsStatusCallback": nil, "MessageStatusCallback": nil,
		"VoiceMethod": methods, "VoiceFallbackMethod": methods, "StatusCallbackMethod": methods, "SmsMethod": methods, "SmsFallbackMethod": methods,
		"VoiceCallerIdLookup": truths, "PublicApplicationConnectEnabled": truths,
	},
	defaults: map[string]string{
		"ApiVersion": apiVersion, "VoiceMethod": "POST", "VoiceFallbackMethod": "POST", "StatusCallbackMethod": "POST", "SmsMethod": "POST", "SmsFallbackMethod": "POST",
	},
	first: firstApplication,
}, cardFilter("FriendlyName"))

var truths = []string{"true", "false"}

var applicationNames = [seededApplications]string{"Switchboard", "Night desk", "Browser phone", "Survey <v2>", "Rückruf & Termine", "IVR \"old\""}

func firstApplication(_ *world, _ *sequence, i int64) map[string]string {
	name := applicationNames[i]
	fields := map[string]string{"FriendlyName": name, "VoiceUrl": "https://hooks.example.com/app/voice?name=" + encode(name)}
	if i%2 == 0 {
		fields["SmsUrl"], fields["SmsMethod"] = "https://hooks.example.com/app/sms", "GET"
		fields["StatusCallback"] = "https://hooks.example.com/app/status"
	}
	if i == 2 {
		fields["VoiceCallerIdLookup"], fields["PublicApplicationConnectEnabled"] = "true", "true"
	}
	return fields
}

var applicationRoutes = []route{
	{pattern: "Accounts/*/Applications", kind: applications},
	{pattern: "Accounts/*/Applications/*", kind: applications, instance: true},
}

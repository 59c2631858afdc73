// Walks every list with the provider's npm package and prints what it found:
// one JSON object, list name -> records, as the package shows them.
//
//   node walk.mjs BASE ACCOUNT TOKEN '{"call":"CA…","message":"SM…",…}'

import twilio from 'twilio';

const [base, account, token, parents] = process.argv.slice(2);
const of = JSON.parse(parents);
const client = twilio(account, token, { autoRetry: false });
if (base) { // else the provider's own hosts are asked
  client.api.baseUrl = base;
  client.monitor.baseUrl = base;
}

const page = { pageSize: 100 };
const countries = client.availablePhoneNumbers;
const lists = {
  accounts: () => client.api.v2010.accounts.list(page),
  calls: () => client.calls.list(page),
  call_recordings: () => client.calls(of.call).recordings.list(page),
  call_notifications: () => client.calls(of.noticed).notifications.list(page),
  call_events: () => client.calls(of.call).events.list(page),
  messages: () => client.messages.list(page),
  media: () => client.messages(of.message).media.list(page),
  conferences: () => client.conferences.list(page),
  participants: () => client.conferences(of.conference).participants.list(page),
  conference_recordings: () => client.conferences(of.recorded).recordings.list(page),
  recordings: () => client.recordings.list(page),
  recording_transcriptions: () => client.recordings(of.transcribed).transcriptions.list(page),
  transcriptions: () => client.transcriptions.list(page),
  incoming_phone_numbers: () => client.incomingPhoneNumbers.list(page),
  incoming_local: () => client.incomingPhoneNumbers.local.list(page),
  incoming_mobile: () => client.incomingPhoneNumbers.mobile.list(page),
  incoming_toll_free: () => client.incomingPhoneNumbers.tollFree.list(page),
  available_local: () => countries('US').local.list({ limit: 20 }),
  available_mobile: () => countries('GB').mobile.list({ limit: 20 }),
  available_toll_free: () => countries('US').tollFree.list({ limit: 20 }),
  notifications: () => client.notifications.list(page),
  queues: () => client.queues.list(page),
  queue_members: () => client.queues(of.queue).members.list(page),
  applications: () => client.applications.list(page),
  outgoing_caller_ids: () => client.outgoingCallerIds.list(page),
  usage_records: () => client.usage.records.list(page),
  usage_all_time: () => client.usage.records.allTime.list(page),
  usage_daily: () => client.usage.records.daily.list({ ...page, category: 'calls' }),
  usage_monthly: () => client.usage.records.monthly.list({ ...page, category: 'calls' }),
  usage_today: () => client.usage.records.today.list(page),
  usage_last_month: () => client.usage.records.lastMonth.list(page),
  keys: () => client.keys.list(page),
  signing_keys: () => client.signingKeys.list(page),
  addresses: () => client.addresses.list(page),
  alerts: () => client.monitor.v1.alerts.list(page),
  monitor_events: () => client.monitor.v1.events.list(page),
};

// With what to look for, lists are asked for by their filters instead.
const by = of.filters;
const filtered = by && {
  accounts_active: () => client.api.v2010.accounts.list({ status: 'active', ...page }),
  calls_to: () => client.calls.list({ to: by.to, pageSize: 7 }),
  calls_from_since: () => client.calls.list({ from: by.from, startTimeAfter: new Date(by.since), pageSize: 20 }),
  calls_completed: () => client.calls.list({ status: 'completed', ...page }),
  calls_between: () => client.calls.list({ startTimeAfter: new Date(by.since), startTimeBefore: new Date(by.until), pageSize: 13 }),
  calls_ended: () => client.calls.list({ endTimeAfter: new Date(by.since), status: 'busy' }),
  calls_of_moment: () => client.calls.list({ startTime: new Date(by.since), pageSize: 3 }),
  calls_of_parent: () => client.calls.list({ parentCallSid: by.parent }),
  calls_none: () => client.calls.list({ to: '+15005550000' }),
  messages_to: () => client.messages.list({ to: by.texted, pageSize: 5 }),
  messages_between: () => client.messages.list({ dateSentAfter: new Date(by.since), dateSentBefore: new Date(by.until), pageSize: 40 }),
  messages_of_moment: () => client.messages.list({ dateSent: new Date(by.sent), pageSize: 9 }),
  conferences_completed: () => client.conferences.list({ status: 'completed', dateCreatedAfter: new Date(by.day), pageSize: 4 }),
  conferences_named: () => client.conferences.list({ friendlyName: by.conference }),
  recordings_of_call: () => client.recordings.list({ callSid: of.call }),
  recordings_until: () => client.recordings.list({ dateCreatedBefore: new Date(by.until), pageSize: 11 }),
  participants_unmuted: () => client.conferences(of.conference).participants.list({ muted: false }),
  notifications_errors: () => client.notifications.list({ log: 0, pageSize: 6 }),
  numbers_like: () => client.incomingPhoneNumbers.list({ phoneNumber: by.digits }),
  alerts_errors: () => client.monitor.v1.alerts.list({ logLevel: 'error', pageSize: 2 }),
};

const found = {};
for (const [name, list] of Object.entries(filtered ?? lists)) {
  try {
    found[name] = (await list()).map((record) => record.toJSON());
  } catch (err) {
    found[name] = `${err.status ?? ''} ${err.code ?? ''} ${err.message}`;
  }
}
process.stdout.write(JSON.stringify(found));

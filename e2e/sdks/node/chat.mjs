// Chat: walks lists and reads a record with @slack/web-api, and prints what it was given.
import { WebClient } from '@slack/web-api';

const [address, token] = process.argv.slice(2);
const client = new WebClient(token, { slackApiUrl: address + '/api/', retryConfig: { retries: 0 } });
const out = { channels: [], history: [] };
for await (const page of client.paginate('conversations.list', { limit: 2, types: 'public_channel' })) {
  out.channels.push(...page.channels.map((c) => c.id + ' ' + c.name));
}
for await (const page of client.paginate('conversations.history', { channel: 'C1', limit: 2 })) {
  out.history.push(...page.messages.map((m) => m.ts + ' ' + m.text));
}
try {
  await client.conversations.history({ channel: 'C404' });
} catch (e) {
  out.error = e.data?.error ?? String(e);
}
console.log(JSON.stringify(out));

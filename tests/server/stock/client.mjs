// The same conversation by the stock `openai` client for Node, unmodified; see client.py.
//
//     node client.mjs URL SPEECH OUT

import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';

const [url, speech, out] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url, apiKey: 'no-key-is-needed-here' });
const realtime = new OpenAIRealtimeWS({ model: 'voiceloop' }, client);

/** Events that nobody has waited for yet, and whoever waits. */
const events = [];
let wake = () => {};
realtime.on('event', (event) => {
  events.push(event);
  wake();
});
realtime.on('error', (error) => {
  console.error(error.message);
  process.exit(1);
});

async function until(type, audio) {
  for (;;) {
    while (events.length) {
      const event = events.shift();
      if (audio && event.type === 'response.output_audio.delta') {
        audio.push(Buffer.from(event.delta, 'base64'));
      }
      if (event.type === type) return event;
    }
    await new Promise((resolve) => {
      wake = resolve;
    });
  }
}

async function say(name) {
  const pcm = Buffer.concat([readFileSync(`${speech}/${name}`), Buffer.alloc(48_000)]);
  for (let at = 0; at < pcm.length; at += 960) {
    const audio = pcm.subarray(at, at + 960).toString('base64');
    realtime.send({ type: 'input_audio_buffer.append', audio });
    await sleep(20);
  }
}

function write(text) {
  const content = [{ type: 'input_text', text }];
  realtime.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } });
  realtime.send({ type: 'response.create' });
}

function update(session) {
  realtime.send({ type: 'session.update', session: { type: 'realtime', ...session } });
  return until('session.updated');
}

const found = {};
found.session = (await until('session.created')).session.type;
const input = { transcription: { model: 'whisper-1' }, turn_detection: { type: 'semantic_vad' } };
found.detection = (await update({ audio: { input } })).session.audio.input.turn_detection.type;

// A spoken question, and a spoken answer.
let speaking = say('capital.pcm');
found.heard = (await until('conversation.item.input_audio_transcription.completed')).transcript;
const audio = [];
let done = await until('response.done', audio);
found.answer = done.response.output[0].content[0].transcript;
writeFileSync(out, Buffer.concat(audio));
await speaking;

// Interrupt an answer by speaking; then truncate what was played of it.
write('Why is the sky blue?');
const begun = await until('response.output_audio.delta');
await sleep(500);
speaking = say('capital.pcm');
done = await until('response.done');
found.interrupted = done.response.status_details.reason;
realtime.send({
  type: 'conversation.item.truncate', item_id: begun.item_id, content_index: 0, audio_end_ms: 400,
});
found.truncated = (await until('conversation.item.truncated')).audio_end_ms;
done = await until('response.done');
found.after = done.response.output[0].content[0].transcript;
await speaking;

// A function of the client's.
const tool = { type: 'function', name: 'get_time', description: 'The time.', parameters: {} };
await update({ tools: [tool] });
write('What time is it?');
const call = await until('response.function_call_arguments.done');
await until('response.done');
found.called = call.name;
const output = JSON.stringify({ time: '7:42 PM', day: 'Monday', date: 'June 1' });
const item = { type: 'function_call_output', call_id: call.call_id, output };
realtime.send({ type: 'conversation.item.create', item });
realtime.send({ type: 'response.create' });
done = await until('response.done');
found.told = done.response.output[0].content[0].transcript;
console.log(JSON.stringify(found));
realtime.close();

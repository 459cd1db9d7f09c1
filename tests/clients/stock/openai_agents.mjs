// OpenAI's Agents SDK for Node: a RealtimeSession over its websocket transport.
//
//     node openai_agents.mjs URL FOLDER

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession, tool } from '@openai/agents/realtime';
import { z } from 'zod';

const RATE = 24_000;
const FRAME = 2 * 0.02 * RATE;
const PATIENCE_MS = 20_000;
const [url, folder] = process.argv.slice(2);
const script = JSON.parse(readFileSync(`${folder}/script.json`, 'utf8'));

function told(step, came) {
  console.log(JSON.stringify({ step, ...came }));
}

async function until(found) {
  const end = Date.now() + PATIENCE_MS;
  while (!found()) {
    if (Date.now() > end) throw new Error(`it never came: ${found}`);
    await sleep(20);
  }
}

/** A session that has begun, what it has told, and a microphone. */
class Talk {
  called = [];
  events = [];
  playedMs = 0;
  #said = Buffer.alloc(0);

  async begin() {
    const getTime = tool({
      name: 'get_time',
      description: 'The time.',
      parameters: z.object({}),
      execute: async () => {
        this.called.push('get_time');
        return script.tool_output;
      },
    });
    const agent = new RealtimeAgent({
      name: 'Clock', instructions: script.instructions, tools: [getTime],
    });
    const transport = new OpenAIRealtimeWebSocket();
    this.session = new RealtimeSession(agent, { transport, model: 'voiceloop' });
    this.session.transport.on('*', (event) => this.events.push(event));
    this.session.on('audio', ({ data }) => {
      this.playedMs += data.byteLength / (2 * RATE / 1000);
    });
    this.session.on('error', ({ error }) => console.error('error', JSON.stringify(error)));
    const realtime = `${url.replace('http', 'ws')}/v1/realtime?model=voiceloop`;
    await this.session.connect({ apiKey: 'none', url: realtime });
    await until(() => this.all('session.updated').length);
    let next = Date.now();
    this.hearing = setInterval(() => {
      for (; next <= Date.now(); next += 20) {
        const frame = Buffer.alloc(FRAME);
        this.#said.copy(frame, 0, 0, FRAME);
        this.#said = this.#said.subarray(FRAME);
        this.session.sendAudio(frame.buffer.slice(frame.byteOffset, frame.byteOffset + FRAME));
      }
    }, 20);
  }

  end() {
    clearInterval(this.hearing);
    this.session.close();
  }

  say(name) {
    this.#said = readFileSync(`${folder}/${name}`);
  }

  all(type, since = 0) {
    return this.events.slice(since).filter((event) => event.type === type);
  }

  last(role) {
    const found = this.session.history.filter((item) => item.role === role).at(-1);
    return (found?.content ?? []).map((part) => part.transcript ?? part.text ?? '').join('');
  }

  /** What the history has at the end of that many responses. */
  async reply(since, count = 1) {
    await until(() => this.all('response.done', since).length >= count);
    await until(() => this.last('assistant'));
    return this.last('assistant');
  }

  /** What came back in one turn. */
  async turn(kind) {
    const since = this.events.length;
    let reply;
    switch (kind) {
      case 'greeting':
        this.session.transport.sendEvent({
          type: 'response.create', response: { instructions: script.greeting },
        });
        return { reply: await this.reply(since) };
      case 'spoken':
        this.say('capital.pcm');
        reply = await this.reply(since);
        return { heard: this.last('user'), reply };
      case 'typed':
        this.session.sendMessage(script.typed);
        return { reply: await this.reply(since) };
      case 'tool':
        this.called = [];
        this.session.sendMessage(script.tool);
        reply = await this.reply(since, 2);
        return { called: this.called, reply };
      case 'interrupted':
        return this.cut(() => this.say('capital.pcm'), true);
      default:
        return this.cut(() => this.session.interrupt(), false);
    }
  }

  /** Interrupt a story while it sounds. */
  async cut(stop, follow) {
    let since = this.events.length;
    const played = this.playedMs;
    this.session.sendMessage(script.story);
    await until(() => this.playedMs > played + 1000 * script.interrupt_after_s);
    const story = this.all('response.output_audio.delta', since).at(-1).item_id;
    stop();
    await this.reply(since);
    const came = follow ? { reply: await this.reply(since, 2) } : {};
    await until(() => this.all('conversation.item.truncated', since).length);
    const cutMs = this.all('conversation.item.truncated', since)[0].audio_end_ms;
    since = this.events.length;
    this.session.transport.sendEvent({ type: 'conversation.item.retrieve', item_id: story });
    // The SDK itself retrieves other items.
    const retrieved = () => this.all('conversation.item.retrieved', since)
      .find(({ item }) => item.id === story);
    await until(retrieved);
    const [part] = retrieved().item.content;
    return { cut_ms: cutMs, kept: part.transcript, ...came };
  }
}

const talk = new Talk();
await talk.begin();
for (const kind of script.turns) told(kind, await talk.turn(kind));
talk.end();

// The SDK restores messages; calls it sends to nobody.
const restored = new Talk();
await restored.begin();
restored.session.updateHistory(script.history.filter((one) => one.type === 'message').map(
  ({ role, text }, at) => ({
    itemId: `item_${at}`,
    type: 'message',
    role,
    status: 'completed',
    content: [{ type: role === 'user' ? 'input_text' : 'output_text', text }],
  }),
));
const since = restored.events.length;
restored.session.sendMessage(script.again);
told('restored', { reply: await restored.reply(since) });
restored.end();

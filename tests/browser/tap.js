/**
 * Runs in the page before its own scripts: whatever is connected to the speaker is recorded too,
 * and whatever comes from the microphone.
 *
 * window.tap holds the blocks that are not silent, those of the microphone with their rate, and when
 * the last event of each type came from the server, in frames of the context that plays.
 */
window.tap = { blocks: [], microphone: [], rate: 0, events: {}, context: null };

// A page that is not secure has no audio worklets.
if ('AudioWorklet' in window) {
  const addModule = AudioWorklet.prototype.addModule;
  AudioWorklet.prototype.addModule = async function (url) {
    await addModule.call(this, '/tap-worklet.js');
    return addModule.call(this, url);
  };

  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      const node = new AudioWorkletNode(this.context, 'tap', { channelCount: 1 });
      node.port.onmessage = ({ data }) => window.tap.blocks.push(data);
      connect.call(this, node);
      window.tap.context = this.context;
    }
    if (this instanceof MediaStreamAudioSourceNode) {
      const node = new AudioWorkletNode(this.context, 'tap', { channelCount: 1 });
      node.port.onmessage = ({ data }) => window.tap.microphone.push(data);
      connect.call(this, node);
      window.tap.rate = this.context.sampleRate;
    }
    return connect.call(this, target, ...rest);
  };
}

const Socket = WebSocket;
window.WebSocket = class extends Socket {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', ({ data }) => {
      if (typeof data !== 'string' || !window.tap.context) return;
      const { currentTime, sampleRate } = window.tap.context;
      const type = /"type": ?"([^"]*)"/.exec(data)?.[1];
      window.tap.events[type] = Math.round(currentTime * sampleRate);
    });
  }
};

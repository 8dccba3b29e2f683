// The WebSocket to the server: connects again by itself, and sends commands.

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5000;

export function connect({ onMessage, onStatus }) {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  const url = new URL("watch", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.hash = "";
  url.search = token ? new URLSearchParams({ token }) : "";
  let socket = null;
  let wait = FIRST_WAIT_MS;

  function open() {
    socket = new WebSocket(url);
    socket.onopen = () => {
      wait = FIRST_WAIT_MS;
      onStatus(true, "");
    };
    socket.onmessage = (event) => onMessage(JSON.parse(event.data));
    socket.onclose = (event) => {
      onStatus(false, event.reason);
      setTimeout(open, wait);
      wait = Math.min(LONGEST_WAIT_MS, wait * 1.7);
    };
  }
  open();
  return (command) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
  };
}

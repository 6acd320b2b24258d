using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "@cloudflare/workers-oauth-provider", esModule = embed "node_modules/@cloudflare/workers-oauth-provider/dist/oauth-provider.js"),
  ],
  compatibilityDate = "2026-11-01",
);

package io.idempotence.it.server;

import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;

class JettyLogIT extends LogContract {
    @Override
    ServletServer.Starter starter() {
        return JettyServer::start;
    }
}

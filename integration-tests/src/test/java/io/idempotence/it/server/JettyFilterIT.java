package io.idempotence.it.server;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.JettyServer;

class JettyFilterIT extends FilterContract {
    @Override
    ServletServer.Starter starter() {
        return JettyServer::start;
    }
}

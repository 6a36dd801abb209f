package io.idempotence.it.server;

import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;

class JettyFilterIT extends FilterContract {
    @Override
    ServletServer.Starter starter() {
        return JettyServer::start;
    }
}

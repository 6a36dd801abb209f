package io.idempotence.it.server;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.TomcatServer;

class TomcatLogIT extends LogContract {
    @Override
    ServletServer.Starter starter() {
        return TomcatServer::start;
    }
}

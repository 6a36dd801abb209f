package io.idempotence.it.redeploy;

import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** An application that protects its only servlet, and closes what it opened. Its classes are loaded anew for each deployment. */
public final class WebApplication implements ServletContextListener {
    private Idempotence idempotence;

    @Override
    public void contextInitialized(ServletContextEvent event) {
        ServletContext context = event.getServletContext();
        idempotence = Idempotence.builder(RedisIdempotenceStorage.connect(context.getInitParameter("redis")))
                .namespace(context.getInitParameter("namespace"))
                .build();
        IdempotenceFilter.install(context, idempotence);
        ServletRegistration.Dynamic servlet = context.addServlet("handler", new Handler());
        servlet.setAsyncSupported(true);
        servlet.addMapping("/*");
    }

    @Override
    public void contextDestroyed(ServletContextEvent event) {
        idempotence.close();
    }

    /** Takes long enough for a duplicate to wait. */
    private static final class Handler extends HttpServlet {
        private static final long serialVersionUID = 1L;

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
            response.sendError(422, "no such account");
        }
    }
}

package io.idempotence.examples.payments.provider;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.idempotence.examples.payments.api.PaymentOrder;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** The servlet behind {@code POST /payments}, which makes a payment. It has no code for retries and does not look for duplicates. */
final class PaymentServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;

    private final transient Ledger ledger;
    private final transient ObjectMapper json = new ObjectMapper();
    private final String instance;

    PaymentServlet(Ledger ledger, String instance) {
        this.ledger = ledger;
        this.instance = instance;
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        PaymentOrder order;
        try {
            order = json.readValue(request.getInputStream(), PaymentOrder.class);
        } catch (JacksonException e) {
            response.sendError(HttpServletResponse.SC_BAD_REQUEST, "the body is not a payment order");
            return;
        }
        takeYourTime(request);
        byte[] payment = json.writeValueAsBytes(ledger.pay(order, instance));
        response.setStatus(HttpServletResponse.SC_CREATED);
        response.setContentType("application/json");
        response.setContentLength(payment.length);
        response.getOutputStream().write(payment);
    }

    /** For the demo only: the network asks for a slow handler. */
    private static void takeYourTime(HttpServletRequest request) throws IOException {
        int millis = request.getIntHeader(PaymentProvider.SLOW_HANDLER_HEADER);
        if (millis > 0) {
            try {
                Thread.sleep(millis);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IOException("the provider stops", e);
            }
        }
    }
}

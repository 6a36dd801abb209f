package io.idempotence.examples.orders.shop;

import io.idempotence.IdempotenceId;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.time.Instant;
import java.util.List;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Repository;

/** The shop's orders, in PostgreSQL, with the idempotence ID of each payment call. */
@Repository
class OrderBook {
    private final JdbcClient database;

    OrderBook(JdbcClient database) {
        this.database = database;
        database.sql(
                        "create table if not exists orders (number bigserial primary key, item text, cents int, state text,"
                                + " payment bigint, payment_call text, payment_sent_at timestamptz)")
                .update();
    }

    /** An order; the ID and the time of its payment call are null until one is made. */
    record Order(
            long number,
            String item,
            int cents,
            State state,
            Long payment,
            String paymentCall,
            Instant paymentSentAt) {}

    enum State {
        NEW,
        PAID,
        /** The payment call ended without a definite result. */
        UNKNOWN,
        /** The payment was certainly not made. */
        FAILED
    }

    long add(String item, int cents) {
        return database.sql("insert into orders (item, cents, state) values (?, ?, 'NEW') returning number")
                .params(item, cents)
                .query(Long.class)
                .single();
    }

    Order get(long number) {
        return database.sql("select * from orders where number = ?")
                .params(number)
                .query((row, index) -> order(row))
                .single();
    }

    List<Order> latest() {
        return database.sql("select * from orders order by number desc limit 10")
                .query((row, index) -> order(row))
                .list();
    }

    private static Order order(ResultSet row) throws SQLException {
        Timestamp sentAt = row.getTimestamp("payment_sent_at");
        return new Order(
                row.getLong("number"),
                row.getString("item"),
                row.getInt("cents"),
                State.valueOf(row.getString("state")),
                row.getObject("payment", Long.class),
                row.getString("payment_call"),
                sentAt == null ? null : sentAt.toInstant());
    }

    /** Saves the ID of the payment call before the first request leaves. */
    void sends(long number, IdempotenceId id) {
        database.sql("update orders set payment_call = ?, payment_sent_at = ? where number = ?")
                .params(id.value(), Timestamp.from(Instant.now()), number)
                .update();
    }

    void paid(long number, long payment) {
        database.sql("update orders set state = 'PAID', payment = ? where number = ?")
                .params(payment, number)
                .update();
    }

    void ended(long number, State state) {
        database.sql("update orders set state = ? where number = ?")
                .params(state.name(), number)
                .update();
    }
}

package io.idempotence.server.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A statement with named parameters, such as {@code :owner}. Immutable. */
final class Sql {
    private static final Pattern NAME = Pattern.compile(":([a-zA-Z]+)");

    private final String text;
    private final List<String> names = new ArrayList<>();

    Sql(String named) {
        Matcher matcher = NAME.matcher(named);
        while (matcher.find()) {
            names.add(matcher.group(1));
        }
        this.text = matcher.replaceAll("?");
    }

    PreparedStatement prepare(Connection connection, Parameters parameters) throws SQLException {
        PreparedStatement statement = connection.prepareStatement(text);
        try {
            for (int i = 0; i < names.size(); i++) {
                parameters.bind(statement, i + 1, names.get(i));
            }
            return statement;
        } catch (SQLException | RuntimeException e) {
            statement.close();
            throw e;
        }
    }

    @Override
    public String toString() {
        return text;
    }

    /** The values of the parameters in one call. */
    static final class Parameters {
        private final Map<String, @Nullable Object> values = new HashMap<>();

        Parameters with(String name, @Nullable Object value) {
            values.put(name, value);
            return this;
        }

        private void bind(PreparedStatement statement, int index, String name) throws SQLException {
            Object value = values.get(name);
            if (value instanceof byte[] bytes) {
                statement.setBytes(index, bytes);
            } else if (value instanceof Long number) {
                statement.setLong(index, number);
            } else if (value instanceof Integer number) {
                statement.setInt(index, number);
            } else if (value instanceof String text) {
                statement.setString(index, text);
            } else if (values.containsKey(name)) {
                statement.setNull(index, Types.VARBINARY);
            } else {
                throw new IllegalStateException("no value for :" + name);
            }
        }
    }
}

package io.idempotence.spring.method;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.util.ClassUtils;

/** The look-up of the application's JSON mapper: of Jackson 3 if there is one, else of Jackson 2. */
final class JsonMappers {
    private final BeanFactory beans;

    JsonMappers(BeanFactory beans) {
        this.beans = beans;
    }

    @Nullable
    JsonResults get() {
        ClassLoader loader = JsonMappers.class.getClassLoader();
        JsonResults found = null;
        if (ClassUtils.isPresent("tools.jackson.databind.json.JsonMapper", loader)) {
            found = Jackson3.find(beans);
        }
        if (found == null && ClassUtils.isPresent("com.fasterxml.jackson.databind.ObjectMapper", loader)) {
            found = Jackson2.find(beans);
        }
        return found;
    }

    /** Loaded only where Jackson 3 is there. */
    private static final class Jackson3 {
        static @Nullable JsonResults find(BeanFactory beans) {
            tools.jackson.databind.ObjectMapper mapper = beans.getBeanProvider(
                            tools.jackson.databind.json.JsonMapper.class)
                    .getIfUnique();
            return mapper == null ? null : new Jackson3Results(mapper);
        }
    }

    /** Loaded only where Jackson 2 is there. */
    private static final class Jackson2 {
        static @Nullable JsonResults find(BeanFactory beans) {
            com.fasterxml.jackson.databind.ObjectMapper mapper = beans.getBeanProvider(
                            com.fasterxml.jackson.databind.ObjectMapper.class)
                    .getIfUnique();
            return mapper == null ? null : new Jackson2Results(mapper);
        }
    }
}
